import "reflect-metadata";
import { Inject, Injectable, Scope } from "@nestjs/common";
import { REQUEST } from "@nestjs/core";
import {
  type ConnectEvent,
  createReceiver,
  type HandlerContext,
  type HeldEvent,
  memoryInbox,
  type PaymentEvent,
  Reject,
} from "@payhooks/core";
import { type SourceEvent, stripe } from "@payhooks/core/sources";
import { connectEvent, signConnectWebhook, signers } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { EVENTS } from "../../core/src/protocol/events.ts";
import * as nestjs from "../src/index.ts";
import {
  InjectReceiver,
  OnDeposit,
  OnEvent,
  OnHeld,
  OnSettlementApproved,
  OnWithdrawal,
  PayhooksModule,
  type PayhooksModuleOptions,
} from "../src/index.ts";
import { CONNECT, listening, newReceiver, PAY, PLATFORMS, payment, RECEIVED, SECRET } from "./application.ts";

/** The handlers' work, in order. A provider, so that handlers get it by injection. */
@Injectable()
class Books {
  readonly entries: string[] = [];
}

const until = (books: Books, entries: readonly string[]) =>
  expect.poll(() => [...books.entries].sort()).toEqual([...entries].sort());

const paths = { payments: PAY, connect: CONNECT };
const root = (more: Partial<PayhooksModuleOptions> = {}) =>
  PayhooksModule.forRoot({ receiver: () => newReceiver(), paths, ...more });

describe("the decorators", () => {
  it("are one for each event of the specification, and those of sources and of held events", () => {
    const expected = [...Object.keys(EVENTS), "onEvent", "onHeld"].map((name) => `O${name.slice(1)}`);
    expect(Object.keys(nestjs).filter((name) => /^On[A-Z]/.test(name))).toEqual(expected.sort());
  });
});

describe.each(PLATFORMS)("on %s", (_, adapter) => {
  it("methods of providers are handlers, with their injected dependencies", async () => {
    @Injectable()
    class Payments {
      constructor(@Inject(Books) private readonly books: Books) {}

      @OnDeposit()
      async credit(deposit: PaymentEvent<"DEPOSIT">, { effectId }: HandlerContext) {
        this.books.entries.push(`credit ${deposit.referenceId} ${effectId.length > 20}`);
      }

      @OnWithdrawal()
      settle(withdrawal: PaymentEvent<"WITHDRAWAL">) {
        this.books.entries.push(`settle ${withdrawal.referenceId}`);
      }

      @OnWithdrawal({ status: ["FAILED", "PENDING"] })
      other({ status, referenceId }: PaymentEvent<"WITHDRAWAL">) {
        this.books.entries.push(`${status} ${referenceId}`);
      }

      @OnSettlementApproved()
      book({ data }: ConnectEvent<"settlement.approved">) {
        this.books.entries.push(`book ${data.amount}`);
      }
    }
    const { app, post } = await listening({ imports: [root()], providers: [Books, Payments] }, adapter());
    const withdrawal = { event: "WITHDRAWAL" } as const;
    const answers = [
      await post(PAY, payment({ referenceId: "d-1" })),
      await post(PAY, payment({ referenceId: "d-2", status: "FAILED" })),
      await post(PAY, payment({ ...withdrawal, referenceId: "w-1", payTxnId: "t-1" })),
      await post(PAY, payment({ ...withdrawal, referenceId: "w-2", payTxnId: "t-2", status: "FAILED" })),
      await post(CONNECT, signConnectWebhook(connectEvent("settlement.approved"), SECRET)),
    ];
    expect(answers).toEqual(Array(5).fill(RECEIVED));
    await until(app.get(Books), ["credit d-1 true", "settle w-1", "FAILED w-2", "book 125000"]);
  });

  it("a provider in the scope of requests is made for each event, which it gets as its request", async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      static made = 0;
      readonly number = ++Scoped.made;
      constructor(
        @Inject(Books) private readonly books: Books,
        @Inject(REQUEST) private readonly request: { event: PaymentEvent; context: HandlerContext },
      ) {}

      @OnDeposit()
      async credit(deposit: PaymentEvent<"DEPOSIT">) {
        const isSame = this.request.event === deposit && this.request.context.attempt === 1;
        this.books.entries.push(`${this.number} ${isSame}`);
      }
    }
    const { app, post } = await listening({ imports: [root()], providers: [Books, Scoped] }, adapter());
    await post(PAY, payment({ payTxnId: "t-1" }));
    await until(app.get(Books), ["1 true"]);
    await post(PAY, payment({ payTxnId: "t-2" }));
    await until(app.get(Books), ["1 true", "2 true"]);
  });

  it("events of a source and held events have methods too", async () => {
    interface Invoice {
      readonly id: string;
    }
    const sources = { billing: stripe({ secret: SECRET }) };
    const receiver = () => createReceiver({ sources, inbox: memoryInbox(), logger: SILENT });
    @Injectable()
    class Billing {
      constructor(@Inject(Books) private readonly books: Books) {}

      @OnEvent("billing", "invoice.paid")
      paid({ data }: SourceEvent<"billing", "invoice.paid", Invoice>) {
        this.books.entries.push(`paid ${data.id}`);
        throw new Reject("not ours");
      }

      @OnHeld()
      held({ reason }: HeldEvent) {
        this.books.entries.push(`held ${reason}`);
      }
    }
    const module = PayhooksModule.forRoot({ receiver, paths: { billing: "/webhooks/billing" } });
    const { app, post } = await listening({ imports: [module], providers: [Books, Billing] }, adapter());
    const signed = signers.stripe({ secret: SECRET })("invoice.paid", { id: "in_1" });
    expect(await post("/webhooks/billing", signed)).toMatch(/^200 /);
    await until(app.get(Books), ["paid in_1", "held rejected"]);
  });
});

describe("methods of one event", () => {
  const start = (providers: (new () => object)[]) =>
    listening({ imports: [root()], providers }, PLATFORMS[0][1]());

  it("that are for the same status need a name: without one the application does not start", async () => {
    class A {
      @OnDeposit() a() {}
      @OnDeposit() b() {}
    }
    await expect(start([A])).rejects.toMatchObject({ code: "ERR_HANDLER_NAME" });
  });

  it("that are one handler have the same options", async () => {
    class A {
      @OnDeposit({ timeoutMs: 1_000 }) a() {}
      @OnDeposit({ status: "FAILED", timeoutMs: 2_000 }) b() {}
    }
    await expect(start([A])).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining("A.a and A.b are one handler, and have two values of timeoutMs"),
    });
  });

  it("with names of their own are handlers of their own", async () => {
    const called: string[] = [];
    class A {
      @OnDeposit() a() {
        called.push("a");
      }
      @OnDeposit({ name: "mail" }) b() {
        called.push("b");
      }
    }
    const { post } = await start([A]);
    await post(PAY, payment());
    await expect.poll(() => called.sort()).toEqual(["a", "b"]);
  });

  it("are those of the classes that a class extends, too", async () => {
    const called: string[] = [];
    class Base {
      @OnDeposit() credit() {
        called.push(this.constructor.name);
      }
    }
    class Derived extends Base {}
    const { post } = await start([Derived]);
    await post(PAY, payment());
    await expect.poll(() => called).toEqual(["Derived"]);
  });

  it("are registered once, if a class that extends another decorates a method again", async () => {
    const called: string[] = [];
    class Base {
      @OnDeposit() credit() {
        called.push("base");
      }
      @OnDeposit({ status: "FAILED" }) refund({ status }: PaymentEvent<"DEPOSIT">) {
        called.push(`base ${status}`);
      }
    }
    class Derived extends Base {
      @OnDeposit() override credit() {
        called.push("derived");
      }
      @OnDeposit({ name: "mail" })
      @OnDeposit({ name: "books" })
      override refund({ status }: PaymentEvent<"DEPOSIT">) {
        called.push(`derived ${status}`);
      }
    }
    const { post } = await start([Derived]);
    await post(PAY, payment({ status: "FAILED", payTxnId: "t-1" }));
    await post(PAY, payment());
    await expect.poll(() => [...called].sort()).toEqual(["derived", "derived SUCCESS", "derived SUCCESS"]);
  });
});

describe("several receivers", () => {
  it("have names, by which methods and injections say which they mean", async () => {
    const called: string[] = [];
    class Both {
      @OnDeposit() first() {
        called.push("first");
      }
      @OnDeposit({ receiver: "shop" }) second() {
        called.push("second");
      }
    }
    class Asking {
      constructor(
        @InjectReceiver() readonly first: object,
        @InjectReceiver("shop") readonly second: object,
      ) {}
    }
    const shop = root({ name: "shop", paths: { payments: "/shop" } });
    const { app, post } = await listening(
      { imports: [root(), shop], providers: [Both, Asking] },
      PLATFORMS[1][1](),
    );
    await post("/shop", payment());
    await expect.poll(() => called).toEqual(["second"]);
    await post(PAY, payment());
    await expect.poll(() => called).toEqual(["second", "first"]);
    expect(app.get(Asking).first).not.toBe(app.get(Asking).second);
  });
});

const SILENT = { info() {}, warn() {}, error() {} };
