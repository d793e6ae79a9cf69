import { inspect } from "node:util";
import { isPayhooksError, PayhooksError, Reject, RetryAfter } from "@payhooks/core";
import { createHarness, createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it, vi } from "vitest";
import { isReject, retryAfterOf } from "../../src/handlers/handler.ts";

/** A second copy of the package, as two versions in one dependency tree are. */
async function secondCopy(): Promise<typeof import("@payhooks/core")> {
  vi.resetModules();
  return import("@payhooks/core");
}

describe("an error that another copy of the package throws", () => {
  it("is another class, and is recognised all the same", async () => {
    const other = await secondCopy();
    expect(other.Reject).not.toBe(Reject);
    expect(new other.Reject("no")).not.toBeInstanceOf(Reject);
    expect(isReject(new other.Reject("no"))).toBe(true);
    expect(retryAfterOf(new other.RetryAfter(1_500))).toBe(1_500);
    expect(isPayhooksError(new other.PayhooksError("ERR_CLOSING", "x"))).toBe(true);
    expect(new other.PayhooksError("ERR_CLOSING", "x")).not.toBeInstanceOf(PayhooksError);
  });

  it("has its effect in a handler", async () => {
    const other = await secondCopy();
    const thrown: Error[] = [new other.RetryAfter(90_000), new other.Reject("unknown customer")];
    const stacks: (string | null)[] = [];
    const t = await createHarness({
      keys: createTestKeys(),
      register(receiver) {
        receiver.onDeposit(() => {
          throw thrown.shift();
        });
        receiver.observe((notice) => {
          if (notice.type === "retry" || notice.type === "given-up") stacks.push(notice.stack);
        });
      },
    });
    const delivery = await t.deposit();
    expect(delivery).toMatchObject({ status: 200, outcome: "retrying", ran: ["deposit"] });
    expect(await t.advance(89_999)).toEqual([]);
    expect(await t.advance(1)).toEqual(["deposit"]);
    expect(await t.held()).toMatchObject([{ reason: "rejected", detail: "Reject: unknown customer" }]);
    // A wait that the handler has asked for is no failure, and has no stack.
    expect(stacks).toEqual([null, expect.stringMatching(/^Reject: unknown customer\n/)]);
    await t.close();
  });

  it("has a status only if it is an answer", () => {
    expect(new PayhooksError("ERR_OVERLOADED", "x").status).toBe(503);
    const atSetUp = new PayhooksError("ERR_KEY_COUNT", "x");
    expect(atSetUp.status).toBeUndefined();
    expect(inspect(atSetUp)).not.toContain("status");
  });

  it.each([undefined, null, 5, "Reject", {}, new Error("x"), { name: "Reject" }, { ms: 5 }])(
    "%s is neither",
    (value) => {
      expect(isReject(value)).toBe(false);
      expect(retryAfterOf(value)).toBeNull();
      expect(isPayhooksError(value)).toBe(false);
    },
  );

  it("asks for no impossible delay", () => {
    expect(retryAfterOf(new RetryAfter(0))).toBe(0);
    for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY])
      expect(retryAfterOf(new RetryAfter(ms))).toBeNull();
    expect(new RetryAfter(5).message).toContain("5 ms");
    expect(isReject(new Reject("why"))).toBe(true);
  });
});
