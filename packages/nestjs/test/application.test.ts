import "reflect-metadata";
import {
  All,
  Body,
  type CanActivate,
  Controller,
  Inject,
  Injectable,
  Module,
  Next,
  Post,
  Req,
  Res,
  UseGuards,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { HealthCheckService, TerminusModule } from "@nestjs/terminus";
import { Test } from "@nestjs/testing";
import { payhooksConsole } from "@payhooks/console/express";
import { payhooksConsole as fastifyConsole } from "@payhooks/console/fastify";
import type { PaymentEvent, Receiver } from "@payhooks/core";
import { createInbox, memoryStore } from "@payhooks/core/inbox";
import { ClsModule, ClsService, UseCls } from "nestjs-cls";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  InjectReceiver,
  OnDeposit,
  PayhooksHealthIndicator,
  PayhooksModule,
  receiverToken,
} from "../src/index.ts";
import { listening, newReceiver, PAY, PLATFORMS, payment, RECEIVED } from "./application.ts";

const paths = { payments: PAY };
const root = () => PayhooksModule.forRoot({ receiver: () => newReceiver(), paths });

class Nothing {
  @OnDeposit() nothing() {}
}

describe.each(PLATFORMS)("an application on %s", (platform, adapter) => {
  it("gets the exact bytes although it parses bodies, and goes on parsing those of its own routes", async () => {
    @Controller()
    class Own {
      @Post("double") double(@Body() body: { n: number }) {
        return { doubled: body.n * 2 };
      }
    }
    const { url, post } = await listening(
      { imports: [root()], controllers: [Own], providers: [Nothing] },
      adapter(),
    );
    const { rawBody, headers } = payment({ referenceId: "ö" });
    const spaced = Buffer.from(Buffer.from(rawBody).toString("utf8").replace("{", "{ \r\n"));
    expect(await post(PAY, { rawBody: spaced, headers })).toBe(RECEIVED);
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: '{"n":21}' };
    expect(await (await fetch(`${url}/double`, init)).json()).toEqual({ doubled: 42 });
  });

  it("that a testing module has made says in the log what to do about the bytes, or has them by rawBody", async () => {
    const refused: string[] = [];
    const receiver = () => {
      const made = newReceiver();
      made.observe((notice) => notice.type === "refused" && refused.push(`${notice.code}: ${notice.why}`));
      return made;
    };
    const answer = async (options: object) => {
      const module = PayhooksModule.forRoot({ receiver, paths });
      const testing = await Test.createTestingModule({ imports: [module], providers: [Nothing] }).compile();
      const app = testing.createNestApplication(adapter() as never, { logger: false, ...options });
      onTestFinished(() => app.close());
      await app.listen(0, "127.0.0.1");
      const { headers, rawBody } = payment();
      const init = { method: "POST", headers, body: Buffer.from(rawBody) };
      const response = await fetch((await app.getUrl()) + PAY, init);
      return `${response.status} ${await response.text()}`;
    };
    expect(await answer({ rawBody: true })).toBe(RECEIVED);
    expect(await answer({ bodyParser: false })).toBe(RECEIVED);
    if (platform === "Fastify") {
      expect(await answer({})).toBe(RECEIVED);
    } else {
      expect(await answer({})).toBe('500 {"error":{"code":"ERR_BODY_CONSUMED"}}');
      expect(refused).toEqual([
        expect.stringMatching(/^ERR_BODY_CONSUMED: .*createNestApplication \{ rawBody: true \}/),
      ]);
    }
  });

  it("starts the receiver before it listens, and ends its handlers before it ends what they use", async () => {
    const told: string[] = [];
    let finish = () => {};
    @Injectable()
    class Database {
      onApplicationShutdown() {
        told.push("the database ends");
      }
    }
    @Injectable()
    class Slow {
      constructor(@Inject(Database) readonly database: Database) {}
      @OnDeposit() async credit() {
        told.push("credit begins");
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        told.push("credit ends");
      }
    }
    const { app, post } = await listening({ imports: [root()], providers: [Database, Slow] }, adapter());
    const receiver = app.get<Receiver>(receiverToken());
    expect((await receiver.ready()).ok).toBe(true);
    await post(PAY, payment());
    await expect.poll(() => told).toEqual(["credit begins"]);
    const closed = app.close();
    await expect.poll(() => receiver.live().ok).toBe(false);
    finish();
    await closed;
    expect(told).toEqual(["credit begins", "credit ends", "the database ends"]);
  });

  it("does not start with a wrong set-up, and says why", async () => {
    const receiver = () => newReceiver({ payments: { publicKey: "no key" } });
    const module = PayhooksModule.forRoot({ receiver, paths });
    const error = expect.objectContaining({ code: "ERR_KEY_UNREADABLE" });
    await expect(listening({ imports: [module], providers: [Nothing] }, adapter())).rejects.toEqual(error);
    const typo = { receiver: () => newReceiver(), path: PAY } as never;
    const unknown = expect.objectContaining({ message: expect.stringContaining('"path"') });
    expect(() => PayhooksModule.forRoot(typo)).toThrow(unknown);
    const made = PayhooksModule.forRootAsync({ useFactory: () => typo });
    await expect(listening({ imports: [made] }, adapter())).rejects.toEqual(unknown);
    const off = PayhooksModule.forRoot({ receiver: () => newReceiver(), paths: { billing: "/billing" } });
    await expect(listening({ imports: [off] }, adapter())).rejects.toMatchObject({
      code: "ERR_SOURCE_UNKNOWN",
    });
  });

  it("starts although the store is away, and is not ready meanwhile: by its probes, and for Terminus", async () => {
    let isAway = true;
    const open = async () => {
      if (isAway) throw Object.assign(new Error("no way"), { code: "ECONNREFUSED" });
    };
    const inbox = () => createInbox({ ...memoryStore(), immediate: false, open });
    const module = PayhooksModule.forRoot({
      receiver: () => newReceiver({ inbox: inbox() }),
      paths,
      probes: { live: "/live", ready: "/ready", maxDueAgeMs: 60_000 },
    });
    const { app, url } = await listening(
      { imports: [module, TerminusModule], providers: [Nothing] },
      adapter(),
    );
    const statusOf = async (path: string) => (await fetch(url + path)).status;
    const indicator = app.get(PayhooksHealthIndicator);
    const check = async () => {
      // Terminus is in the scope of each question.
      const health = await app.resolve(HealthCheckService);
      return health.check([() => indicator.isHealthy("payhooks")]).then(
        ({ status, details }) => ({ overall: status, ...details.payhooks }),
        (error: { getResponse(): { status: string; error: object } }) => error.getResponse(),
      );
    };
    expect([await statusOf("/live"), await statusOf("/ready")]).toEqual([200, 503]);
    expect(await check()).toMatchObject({
      status: "error",
      error: { payhooks: { status: "down", code: "not-started" } },
    });
    isAway = false;
    await expect.poll(() => statusOf("/ready")).toBe(200);
    expect(await check()).toEqual({ overall: "ok", status: "up" });
  });

  it("with nestjs-cls, each handler has the context that is opened for it, and no request's", async () => {
    const seen: string[] = [];
    @Injectable()
    class Service {
      constructor(@Inject(ClsService) private readonly cls: ClsService) {}
      see(name: string) {
        seen.push(`${name} ${this.cls.isActive() ? this.cls.get("reference") : "without a context"}`);
      }
    }
    @Injectable()
    class Handlers {
      constructor(
        @Inject(ClsService) readonly cls: ClsService,
        @Inject(Service) readonly service: Service,
      ) {}

      @OnDeposit({ name: "opened" })
      @UseCls()
      async opened({ referenceId }: PaymentEvent<"DEPOSIT">) {
        this.cls.set("reference", referenceId);
        await new Promise((resolve) => setTimeout(resolve, 20));
        this.service.see("opened");
      }

      @OnDeposit({ name: "bare" })
      bare() {
        this.service.see("bare");
      }
    }
    const cls = ClsModule.forRoot({ global: true, middleware: { mount: true } });
    const { post } = await listening({ imports: [cls, root()], providers: [Service, Handlers] }, adapter());
    const deposits = ["a", "b"].map((one) => payment({ referenceId: one, payTxnId: one }));
    await Promise.all(deposits.map((one) => post(PAY, one)));
    const expected = ["bare without a context", "bare without a context", "opened a", "opened b"];
    await expect.poll(() => [...seen].sort()).toEqual(expected);
  });
});

describe("forRootAsync", () => {
  it("makes the receiver of what other modules have", async () => {
    class Settings {
      readonly path = "/from/settings";
    }
    class SettingsModule {}
    Module({ providers: [Settings], exports: [Settings] })(SettingsModule);
    const module = PayhooksModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: async ({ path }: Settings) => ({
        receiver: () => newReceiver(),
        paths: { payments: path },
      }),
    });
    const { post } = await listening({ imports: [module], providers: [Nothing] }, PLATFORMS[0][1]());
    expect(await post("/from/settings", payment())).toBe(RECEIVED);
  });

  it("runs handlers in an application without a server", async () => {
    const seen: string[] = [];
    class Worker {
      @OnDeposit() credit({ referenceId }: PaymentEvent<"DEPOSIT">) {
        seen.push(referenceId);
      }
    }
    class App {}
    Module({ imports: [root()], providers: [Worker] })(App);
    const app = await NestFactory.createApplicationContext(App, { logger: false });
    onTestFinished(() => app.close());
    const receiver = app.get<Receiver>(receiverToken());
    const { headers, rawBody } = payment({ referenceId: "w-1" });
    await receiver.payments.receive({ method: "POST", url: "/", headers: new Headers(headers), rawBody });
    await expect.poll(() => seen).toEqual(["w-1"]);
  });
});

describe("the console", () => {
  const isAdmin = (headers: { readonly authorization?: string | undefined }) =>
    headers.authorization === "admin";
  const user = { by: "ann", can: ["view"] as const };
  const statuses = async (url: string) => {
    const asked = [{}, { authorization: "admin" }].map((headers) => fetch(`${url}/payhooks`, { headers }));
    return Promise.all(asked.map(async (one) => (await one).status));
  };

  it("is a route on Express, behind the application's own guards", async () => {
    class AdminGuard implements CanActivate {
      canActivate(context: Parameters<CanActivate["canActivate"]>[0]) {
        return isAdmin(context.switchToHttp().getRequest().headers);
      }
    }
    @Controller("payhooks")
    @UseGuards(AdminGuard)
    class ConsoleController {
      private readonly page: ReturnType<typeof payhooksConsole>;
      constructor(@InjectReceiver() receiver: Receiver) {
        this.page = payhooksConsole(receiver, { allowedHosts: ["127.0.0.1"], authorize: () => user });
      }
      @All()
      show(@Req() request: never, @Res() response: never, @Next() next: never) {
        this.page(request, response, next);
      }
    }
    const { url } = await listening(
      { imports: [root()], providers: [Nothing], controllers: [ConsoleController] },
      PLATFORMS[0][1](),
    );
    expect(await statuses(url)).toEqual([403, 200]);
  });

  it("is a plugin on Fastify", async () => {
    class App {}
    Module({ imports: [root()], providers: [Nothing] })(App);
    const app = await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), {
      logger: false,
    });
    onTestFinished(() => app.close());
    const page = fastifyConsole(app.get<Receiver>(receiverToken()), {
      allowedHosts: ["127.0.0.1"],
      authorize: ({ headers }) => (isAdmin(headers) ? user : null),
    });
    await app.register(page as never, { prefix: "/payhooks" });
    await app.listen(0, "127.0.0.1");
    expect(await statuses(await app.getUrl())).toEqual([403, 200]);
  });
});
