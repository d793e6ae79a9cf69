import type { LookupTransaction, Receiver } from "@payhooks/core";
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  type ClientErrorCode,
  type ConnectClient,
  createClient,
  isClientError,
  type LookupReceiver,
  type Medium,
  type PaymentsClient,
  type ReconcileResult,
  type Transaction,
} from "../src/index.ts";
import { apiKey, keys, payment } from "./fixtures.ts";

const baseUrl = "https://api.example.com";
const fromEnvironment: string | undefined = process.env.NOT_SET;

describe("the types of a client", () => {
  it("follow from its keys", () => {
    const payments = createClient({
      baseUrl: fromEnvironment,
      publicKey: fromEnvironment,
      secretKey: fromEnvironment,
    });
    expectTypeOf(payments).toEqualTypeOf<PaymentsClient & ConnectClient>();
    expectTypeOf(createClient({ baseUrl, apiKey })).toEqualTypeOf<ConnectClient>();
    expectTypeOf(createClient({ baseUrl, apiKey, ...keys })).toEqualTypeOf<PaymentsClient & ConnectClient>();
    expect("webhookSettings" in payments).toBe(true);
    expect("pay" in createClient({ baseUrl, apiKey })).toBe(false);
    // @ts-expect-error a secret key alone is not enough
    createClient({ baseUrl, secretKey: "sk" });
  });

  it("do not let a wrong request pass", () => {
    const client = createClient({ baseUrl, ...keys });
    type Payment = Parameters<typeof client.pay>[0];
    expectTypeOf<Payment["medium"]>().toEqualTypeOf<Medium>();
    expectTypeOf<Payment["amount"]>().toEqualTypeOf<string>();
    expectTypeOf<Payment["currency"]>().toEqualTypeOf<"ETB" | "USD">();
    expectTypeOf({ ...payment, amount: 10.5 }).not.toMatchTypeOf<Payment>();
    expectTypeOf<Parameters<typeof client.checkout>[0]["redirects"]>().toEqualTypeOf<{
      readonly success: string;
      readonly failed: string;
    }>();
    const wider = createClient<Medium | "NEWPAY">({ baseUrl, ...keys, allowUnknownMedium: true });
    expectTypeOf<Parameters<typeof wider.pay>[0]["medium"]>().toEqualTypeOf<Medium | "NEWPAY">();
  });
});

describe("the types of answers", () => {
  it("are those of the specification", () => {
    expectTypeOf<Transaction["status"]>().toEqualTypeOf<"SUCCESS" | "FAILED" | "PENDING" | "CANCELLED">();
    expectTypeOf<Transaction["base_amount"]>().toEqualTypeOf<string>();
    expectTypeOf<Transaction["webhook_received"]>().toEqualTypeOf<boolean>();
    expectTypeOf<Transaction>().toMatchTypeOf<LookupTransaction>();
    expectTypeOf<
      Awaited<ReturnType<PaymentsClient["transactionById"]>>
    >().toEqualTypeOf<Transaction | null>();
  });

  it("fit the receiver", () => {
    expectTypeOf<Receiver>().toMatchTypeOf<LookupReceiver>();
  });

  it("narrow by outcome and by code", () => {
    const read = (result: ReconcileResult): string => {
      if (result.outcome === "error") return String(result.error);
      if (result.outcome !== "not-found") return result.transaction.id;
      return result.id === undefined ? result.reference : result.id;
    };
    expect(read({ reference: "r", outcome: "not-found" })).toBe("r");
    expect(read({ id: "t", outcome: "not-found" })).toBe("t");
    const error: unknown = new Error("x");
    if (isClientError(error)) expectTypeOf(error.code).toEqualTypeOf<ClientErrorCode>();
    expect(isClientError(error)).toBe(false);
  });
});
