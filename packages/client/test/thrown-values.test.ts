import { describe, expect, it } from "vitest";
import { HOSTILE } from "../../../test/support/hostile-values.ts";
import { createClient } from "../src/client.ts";
import { ClientError, isClientError } from "../src/errors.ts";
import { keys, withdrawal } from "./fixtures.ts";

async function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => "no rejection",
    (error: unknown) => error,
  );
}

describe.each(Object.entries(HOSTILE))("%s that fetch throws", (_, value) => {
  const client = createClient({
    baseUrl: "https://api.example.com",
    ...keys,
    fetch: () => Promise.reject(value()),
    attempts: 1,
  });

  it("leaves the outcome of a payout unknown", async () => {
    const error = await rejectionOf(client.withdraw(withdrawal));
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ code: "ERR_OUTCOME_UNKNOWN", reference: withdrawal.reference });
    expect(String((error as ClientError).stack).length).toBeLessThan(10_000);
  });

  it("is a lost connection for a look-up", async () => {
    const error = await rejectionOf(client.transactionByReference("order-1"));
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ code: "ERR_CONNECTION_LOST" });
  });

  it("is not an error of the client", () => {
    expect(isClientError(value())).toBe(false);
  });
});
