import {
  type AnyEvent,
  type ConnectEvent,
  createReceiver,
  type ErrorCode,
  type EventName,
  type HandlerContext,
  type Notice,
  type PaymentEvent,
  verifyPaymentCallback,
} from "@payhooks/core";
import { connectWebhooks, paymentCallbacks } from "@payhooks/core/fetch";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { EventOf } from "../src/protocol/events.ts";

/** Checked by the compiler (`tsc`, which the check runs); at run time the assertions on types do nothing. */
describe("types", () => {
  it("look up an event by its name", () => {
    expectTypeOf<EventOf<"settlement.approved">>().toEqualTypeOf<ConnectEvent<"settlement.approved">>();
    expectTypeOf<EventOf<"settlement.approved">["data"]["amount"]>().toEqualTypeOf<number>();
    expectTypeOf<EventOf<"connected_account.declined">["data"]["kyc_status"]>().toEqualTypeOf<string>();
    expectTypeOf<EventOf<"DEPOSIT">>().toEqualTypeOf<PaymentEvent<"DEPOSIT">>();
    expectTypeOf<EventOf<"DEPOSIT" | "WITHDRAWAL">>().toEqualTypeOf<PaymentEvent>();
    expectTypeOf<EventOf<EventName>>().toEqualTypeOf<AnyEvent>();
    // @ts-expect-error: no such event
    expectTypeOf<EventOf<"REVERSAL">>().toBeNever();
  });

  it("narrow by event and by status", () => {
    const label = (event: AnyEvent): string => {
      switch (event.event) {
        case "DEPOSIT":
        case "WITHDRAWAL":
          expectTypeOf(event).toEqualTypeOf<PaymentEvent>();
          expectTypeOf(event.amount).toEqualTypeOf<string>();
          if (event.status === "SUCCESS") expectTypeOf(event.status).toEqualTypeOf<"SUCCESS">();
          else expectTypeOf(event.status).toEqualTypeOf<"FAILED" | "PENDING">();
          return event.payTxnId;
        case "connected_account.approved":
        case "connected_account.declined":
          expectTypeOf(event.data.object).toEqualTypeOf<"connected_account">();
          return event.data.master_merchant_id;
        case "settlement.approved":
        case "settlement.declined":
          expectTypeOf(event.data.object).toEqualTypeOf<"settlement">();
          return event.data.connected_account_id;
        default:
          expectTypeOf(event).toBeNever();
          return "";
      }
    };
    expect(label({ event: "DEPOSIT", payTxnId: "tx-1" } as PaymentEvent)).toBe("tx-1");
  });

  it("give a handler exactly what it can get", () => {
    const receiver = createReceiver({ payments: { publicKey: "" }, connect: { secret: "" } });
    receiver.onDeposit((deposit, ctx) => {
      expectTypeOf(deposit.status).toEqualTypeOf<"SUCCESS">();
      expectTypeOf(deposit.event).toEqualTypeOf<"DEPOSIT">();
      expectTypeOf(ctx).toEqualTypeOf<HandlerContext>();
    });
    receiver.onWithdrawal({
      SUCCESS: (event) => void expectTypeOf(event.status).toEqualTypeOf<"SUCCESS">(),
      FAILED: async (event) => void expectTypeOf(event.status).toEqualTypeOf<"FAILED">(),
      PENDING: undefined,
    });
    receiver.onSettlementApproved(({ data }) => void expectTypeOf(data.amount).toEqualTypeOf<number>());
    receiver.onConnectedAccountDeclined(({ data }) => void expectTypeOf(data.id).toEqualTypeOf<string>());
    // @ts-expect-error: payments have no such status
    expect(() => receiver.onDeposit({ CANCELLED: () => {} }, { name: "a" })).toThrow();
    // @ts-expect-error: an event's amount is no number
    receiver.onDeposit((event) => void Math.max(event.amount), { name: "b" });
    const change = (event: PaymentEvent<"DEPOSIT">): void => {
      // @ts-expect-error: events are read-only
      event.amount = "1";
    };
    expect(() => change(Object.freeze({}) as PaymentEvent<"DEPOSIT">)).toThrow(TypeError);
    expect(receiver.payments.flow).toBe("payments");
  });

  it("accept undefined for options, under exactOptionalPropertyTypes", () => {
    const env: Record<string, string | undefined> = {};
    createReceiver({
      payments: { publicKey: env.PAY_PUBLIC_KEY },
      connect: { secret: env.CONNECT_WEBHOOK_SECRET },
    });
    expect(() => verifyPaymentCallback(new Uint8Array(), { publicKey: env.PAY_PUBLIC_KEY })).toThrow(
      "not set",
    );
    // @ts-expect-error: payments without its key
    createReceiver({ payments: {} });
    // @ts-expect-error: no such option
    expect(() => createReceiver({ payments: { publicKey: "" }, retries: 3 })).toThrow("retries");
  });

  it("discriminate notices by type", () => {
    const handle = (notice: Notice): void => {
      if (notice.type === "retry") expectTypeOf(notice.delayMs).toEqualTypeOf<number>();
      if (notice.type === "refused") expectTypeOf(notice.code).toEqualTypeOf<ErrorCode>();
      if (notice.type === "alert") expectTypeOf(notice.kind).toBeString();
      // @ts-expect-error: only some notices are about an event
      void notice.eventId;
    };
    handle({ type: "warning", what: "", fix: "", at: 0 });
    expectTypeOf<ConnectEvent["authenticated"]>().toEqualTypeOf<boolean>();
  });
});

describe("a whole set-up", () => {
  it("compiles and registers, with the adapter of this package", () => {
    const booked: string[] = [];
    const credit = async (reference: string, amount: string, effectId: string): Promise<void> =>
      void booked.push(reference, amount, effectId);
    const settle = async (_: PaymentEvent): Promise<void> => {};
    const refund = async (_: PaymentEvent): Promise<void> => {};
    const book = async (_: string, __: number): Promise<void> => {};

    const receiver = createReceiver({
      payments: { publicKey: process.env.PAY_PUBLIC_KEY },
      connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
    });
    receiver.onDeposit(async (deposit, ctx) => {
      await credit(deposit.referenceId, deposit.amount, ctx.effectId);
    });
    receiver.onWithdrawal({ SUCCESS: settle, FAILED: refund });
    receiver.onSettlementApproved(async (event) => book(event.data.id, event.data.amount));

    expect(paymentCallbacks(receiver)).toBeTypeOf("function");
    expect(connectWebhooks(receiver)).toBeTypeOf("function");
    expect(booked).toEqual([]);
  });
});
