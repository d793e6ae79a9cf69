import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import { answerWork } from "@payhooks/core/adapter";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";

const url = "https://merchant.example/api/work";
const logged = vi.spyOn(console, "error").mockImplementation(() => {});
afterEach(() => logged.mockClear());
afterAll(() => logged.mockRestore());

/** The answer of the route, and how often it asked for the receiver. */
async function answerTo(
  authorization: string | null,
  secret: string | undefined,
  make = working,
): Promise<{ readonly answer: string; readonly asked: number }> {
  const headers = new Headers(authorization === null ? {} : { authorization });
  let asked = 0;
  const source = (): Receiver => {
    asked++;
    return make();
  };
  const response = await answerWork(source, new Request(url, { headers }), { secret }, undefined);
  return { answer: `${response.status} ${await response.text()}`, asked };
}

function working(): Receiver {
  return createReceiver({ connect: { secret: "whsec_0123456789abcdef" }, inbox: memoryInbox() })
    .onSettlementApproved(() => {})
    .ignore("settlement.declined")
    .ignore("connected_account.approved")
    .ignore("connected_account.declined");
}

const MISCONFIGURED = '500 {"error":{"code":"ERR_MISCONFIGURED"}}';
const UNAUTHORIZED = '401 {"error":{"code":"ERR_UNAUTHORIZED"}}';

describe("the route of a cron job", () => {
  it.each([undefined, "", " ", "\t\n"])(
    "refuses every call while its secret is %j, and says so",
    async (secret) => {
      for (const authorization of [null, "", "Bearer", "Bearer ", `Bearer ${secret}`, "Bearer undefined"]) {
        expect(await answerTo(authorization, secret)).toEqual({ answer: MISCONFIGURED, asked: 0 });
      }
      expect(logged).toHaveBeenCalledWith(expect.stringContaining("workRoute was given no secret"));
    },
  );

  it.each([
    ["cron-secret\n", "begins or ends with white space"],
    [" cron-secret", "begins or ends with white space"],
    ["cron\nsecret", "has a character that no header carries"],
    ["cron-sécret-€", "has a character that no header carries"],
  ])("refuses every call while no header can carry its secret %j, and says so", async (secret, fault) => {
    for (const authorization of [null, "Bearer cron-secret"]) {
      expect(await answerTo(authorization, secret)).toEqual({ answer: MISCONFIGURED, asked: 0 });
    }
    expect(logged).toHaveBeenCalledWith(expect.stringContaining(fault));
  });

  it.each(["cron secret", "cron-sécret"])(
    "works with the secret %j, which a header can carry",
    async (secret) => {
      expect((await answerTo(`Bearer ${secret}`, secret)).asked).toBe(1);
    },
  );

  it.each([
    null,
    "",
    "cron-secret",
    "Bearer",
    "Bearer cron-secret2",
    "bearer cron-secret",
    "Bearer cron-secre",
  ])("refuses a caller with %j, and makes no receiver for it", async (authorization) => {
    expect(await answerTo(authorization, "cron-secret")).toEqual({ answer: UNAUTHORIZED, asked: 0 });
  });

  it("works for every caller that has the secret", async () => {
    const { answer, asked } = await answerTo("Bearer cron-secret", "cron-secret");
    expect(answer).toBe('200 {"ran":0,"failed":0,"remaining":0,"nextDueAt":null}');
    expect(asked).toBe(1);
  });

  it("distinguishes a wrong set-up from a store that is down", async () => {
    const unset = () => createReceiver({ connect: { secret: undefined } }).onSettlementApproved(() => {});
    expect((await answerTo("Bearer cron-secret", "cron-secret", unset)).answer).toBe(MISCONFIGURED);
    const down = () =>
      createReceiver({
        connect: { secret: "whsec_0123456789abcdef" },
        inbox: Object.assign(memoryInbox(), { ready: () => Promise.reject(new Error("ECONNREFUSED")) }),
      }).onSettlementApproved(() => {});
    expect((await answerTo("Bearer cron-secret", "cron-secret", down)).answer).toBe(
      '503 {"error":{"code":"ERR_INBOX_UNAVAILABLE"}}',
    );
  });
});
