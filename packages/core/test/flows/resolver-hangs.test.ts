import type { Reply } from "@payhooks/core";
import { createInbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  fakeClock,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { KeyHint, TenantKeys } from "../../src/flows/keyring.ts";
import type { PublicKeySource } from "../../src/signature/keys.ts";
import { codeOfReply, noticed, SECRET, setUp } from "../receiving.ts";

const keys = createTestKeys();
const rotated = createTestKeys();
const callback = (merchantId: string, { privateKey } = keys) =>
  signPaymentCallback(callbackFields({ merchantId }), privateKey);
const webhook = () => signConnectWebhook(connectEvent(), SECRET);
const short = (reply: Reply): string => `${reply.status} ${codeOfReply(reply) ?? ""}`.trim();

type Answer = TenantKeys<PublicKeySource> | null;
const found = (tenant: string, { publicKey } = keys): Answer => ({ tenant, keys: publicKey });

/** A resolver whose calls are answered by hand, in any order, or never. */
function byHand() {
  const calls: { hint: KeyHint; signal: AbortSignal; answer(given: Answer): Promise<void> }[] = [];
  const resolve = (hint: KeyHint, { signal }: { signal: AbortSignal }): Promise<Answer> =>
    new Promise((settle) => {
      const answer = async (given: Answer): Promise<void> => {
        settle(given);
        await noticed();
      };
      calls.push({ hint, signal, answer });
    });
  return { calls, resolve };
}

describe("a resolver call that never settles", () => {
  it("is forgotten at the deadline: the next delivery asks anew", async () => {
    const { calls, resolve } = byHand();
    const t = await setUp({ payments: { publicKey: resolve } });
    const first = t.post("payments", callback("alpha"));
    await t.clock.advance(1_999);
    // A delivery that comes while the call is under way waits for the same call, and no longer than that has left.
    const second = t.post("payments", callback("alpha"));
    await t.clock.advance(1);
    expect([await first, await second].map(short)).toEqual([
      "503 ERR_ACCEPT_TIMEOUT",
      "503 ERR_ACCEPT_TIMEOUT",
    ]);
    expect(calls).toHaveLength(1);
    const third = t.post("payments", callback("alpha"));
    await noticed();
    expect(calls).toHaveLength(2);
    await calls[1]?.answer(found("alpha"));
    expect(short(await third)).toBe("200");
    expect(t.ran).toHaveLength(1);
  });

  it("has its signal aborted at the deadline and not before; the signal of a call that answers is not aborted", async () => {
    const { calls, resolve } = byHand();
    const t = await setUp({
      payments: { publicKey: resolve },
      connect: { secret: (hint, options) => resolve(hint, options).then(() => null) },
    });
    const posting = [
      t.post("payments", callback("alpha")),
      t.post("payments", callback("beta")),
      t.post("connect", webhook(), { tenant: "gamma" }),
    ];
    await noticed();
    await calls[1]?.answer(found("beta"));
    await t.clock.advance(1_999);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([false, false, false]);
    await t.clock.advance(1);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, false, true]);
    expect(String(calls[0]?.signal.reason)).toBe("Error: no answer after 2000 ms");
    expect((await Promise.all(posting)).map(short)).toEqual([
      "503 ERR_ACCEPT_TIMEOUT",
      "200",
      "503 ERR_ACCEPT_TIMEOUT",
    ]);
  });

  it("that rejects after its signal, as fetch does, is treated like one that goes on", async () => {
    let asked = 0;
    const t = await setUp({
      payments: {
        publicKey: (_, { signal }) =>
          new Promise((_, reject) => {
            asked++;
            signal.addEventListener("abort", () => reject(signal.reason));
          }),
      },
    });
    for (let turn = 1; turn <= 3; turn++) {
      const posting = t.post("payments", callback("alpha"));
      await t.clock.advance("2s");
      expect(short(await posting)).toBe("503 ERR_ACCEPT_TIMEOUT");
      expect(asked).toBe(turn);
    }
  });
});

describe("an answer of a resolver that comes late", () => {
  /** Two calls about one merchant: the first was forgotten, the second is under way. */
  async function twoCalls() {
    const { calls, resolve } = byHand();
    const t = await setUp({ payments: { publicKey: resolve } });
    const first = t.post("payments", callback("alpha"));
    await t.clock.advance("2s");
    await first;
    const second = t.post("payments", callback("alpha"));
    await noticed();
    const [early, late] = calls;
    if (early === undefined || late === undefined) throw new Error("it was not asked twice");
    return { t, calls, early, late, second };
  }

  it("is kept for a minute from its question on", async () => {
    const { calls, resolve } = byHand();
    const t = await setUp({ payments: { publicKey: resolve } });
    const first = t.post("payments", callback("alpha"));
    await t.clock.advance("5s");
    await first;
    await calls[0]?.answer(found("alpha"));
    expect(short(await t.post("payments", callback("alpha")))).toBe("200");
    await t.clock.advance(54_999);
    expect(short(await t.post("payments", callback("alpha")))).toBe("200");
    expect(calls).toHaveLength(1);
    await t.clock.advance(2);
    const asking = t.post("payments", callback("alpha"));
    await noticed();
    expect(calls).toHaveLength(2);
    await calls[1]?.answer(null);
    expect(short(await asking)).toBe("401 ERR_SIGNATURE_INVALID");
  });

  it("is dropped when its minute is over", async () => {
    const { calls, resolve } = byHand();
    const t = await setUp({ payments: { publicKey: resolve } });
    const first = t.post("payments", callback("alpha"));
    await t.clock.advance("60s");
    await first;
    await calls[0]?.answer(found("alpha"));
    void t.post("payments", callback("alpha"));
    await noticed();
    expect(calls).toHaveLength(2);
  });

  it("does not replace the answer to a later question", async () => {
    const { t, early, late, second } = await twoCalls();
    await late.answer(found("alpha", rotated));
    expect(short(await second)).toBe("401 ERR_SIGNATURE_INVALID");
    await early.answer(found("alpha", keys));
    expect(short(await t.post("payments", callback("alpha", rotated)))).toBe("200");
    expect(short(await t.post("payments", callback("alpha", keys)))).toBe("401 ERR_SIGNATURE_INVALID");
  });

  it("does not bring back a merchant whom a later answer has removed, and removes no merchant whom a later answer has", async () => {
    const gone = await twoCalls();
    await gone.late.answer(null);
    await gone.early.answer(found("alpha"));
    expect(short(await gone.t.post("payments", callback("alpha")))).toBe("401 ERR_SIGNATURE_INVALID");
    expect(gone.calls).toHaveLength(2);
    const there = await twoCalls();
    await there.late.answer(found("alpha"));
    await there.early.answer(null);
    expect(short(await there.t.post("payments", callback("alpha")))).toBe("200");
    expect(there.calls).toHaveLength(2);
  });

  it("gives way to the answer to a later question", async () => {
    const { t, early, late, second } = await twoCalls();
    await early.answer(found("alpha", rotated));
    expect(short(await t.post("payments", callback("alpha", rotated)))).toBe("200");
    await late.answer(null);
    expect(short(await second)).toBe("401 ERR_SIGNATURE_INVALID");
    expect(short(await t.post("payments", callback("alpha", rotated)))).toBe("401 ERR_SIGNATURE_INVALID");
  });
});

describe("unknown merchants, while the resolver hangs,", () => {
  /** Merchants "alpha" and "beta" were found a while ago; since then nothing is answered. */
  async function hanging(limits: { readonly maxResolving?: number } = {}) {
    const asked: string[] = [];
    let hangs = false;
    const answerOf = (name: string): Promise<Answer> => {
      asked.push(name);
      return hangs ? new Promise(() => {}) : Promise.resolve(found(name));
    };
    const t = await setUp({
      payments: { publicKey: ({ merchantId = "" }) => answerOf(merchantId) },
      connect: { secret: ({ tenant = "" }) => ({ tenant, keys: SECRET }) },
      alerts: { threshold: 1_000_000 },
      limits,
    });
    expect(short(await t.post("payments", callback("beta")))).toBe("200");
    await t.clock.advance("30s");
    expect(short(await t.post("payments", callback("alpha")))).toBe("200");
    await t.clock.advance("31s");
    asked.length = 0;
    hangs = true;
    const forgery = callback("s-0000").rawBody;
    const stranger = (n: number): Promise<Reply> => {
      const text = Buffer.from(forgery)
        .toString("utf8")
        .replace("s-0000", `s-${String(n).padStart(4, "0")}`);
      const headers = { "content-type": "application/json" };
      return t.post("payments", { rawBody: Buffer.from(text), headers });
    };
    const strangers = (from: number, count: number): Promise<Reply>[] =>
      Array.from({ length: count }, (_, n) => stranger(from + n));
    return { t, asked, strangers, answers: () => (hangs = false) };
  }

  it("take 100 places, and no more calls are made", async () => {
    const { t, asked, strangers } = await hanging();
    const waiting = strangers(0, 100);
    const refused = await Promise.all(strangers(100, 900));
    expect(new Set(refused.map(short))).toEqual(new Set(["503 ERR_OVERLOADED"]));
    expect(refused[0]?.headers["retry-after"]).toBe("5");
    expect(asked).toHaveLength(100);
    await t.clock.advance("2s");
    expect(new Set((await Promise.all(waiting)).map(short))).toEqual(new Set(["503 ERR_ACCEPT_TIMEOUT"]));
  });

  it("block no cached merchant, and not the other flow", async () => {
    const { t, strangers } = await hanging();
    void strangers(0, 1_000);
    await noticed();
    expect(short(await t.post("payments", callback("alpha")))).toBe("200");
    expect(short(await t.post("connect", webhook(), { tenant: "gamma" }))).toBe("200");
  });

  it("block no merchant who was found before, even if the resolver has to be asked again", async () => {
    const { t, asked, strangers, answers } = await hanging();
    void strangers(0, 1_000);
    await noticed();
    answers();
    expect(short(await t.post("payments", callback("beta")))).toBe("200");
    expect(asked.at(-1)).toBe("beta");
  });

  it("block nobody any longer once their calls are forgotten", async () => {
    const { t, strangers, answers } = await hanging();
    const waiting = strangers(0, 1_000);
    await t.clock.advance("2s");
    await Promise.all(waiting);
    answers();
    expect(short(await t.post("payments", callback("new")))).toBe("200");
  });

  it("take as many places as maxResolving says, with one call or with many", async () => {
    const { strangers, asked, t } = await hanging({ maxResolving: 3 });
    const same = Array.from({ length: 3 }, () => t.post("payments", callback("s-0001")));
    await noticed();
    expect(asked).toEqual(["s-0001"]);
    expect((await Promise.all(strangers(1, 2))).map(short)).toEqual([
      "503 ERR_OVERLOADED",
      "503 ERR_OVERLOADED",
    ]);
    expect(t.notices).toContainEqual(
      expect.objectContaining({
        type: "refused",
        code: "ERR_OVERLOADED",
        why: expect.stringContaining(
          "3 deliveries wait for the resolver in payments.publicKey, which is the limit.",
        ),
      }),
    );
    await t.clock.advance("2s");
    await Promise.all(same);
  });
});

describe("deliveries that waited for a resolver", () => {
  it("count as in flight from its answer on, and are limited as such", async () => {
    const clock = fakeClock();
    const { calls, resolve } = byHand();
    let release = (): void => {};
    const gate = new Promise<void>((open) => {
      release = open;
    });
    const store = memoryStore({ clock, maxRecords: 100, maxUnfinished: 100 });
    const slow = {
      ...store,
      immediate: false,
      swap: (items) => gate.then(() => store.swap(items)),
    } satisfies RecordStore;
    const inbox = createInbox(slow, { clock });
    const t = await setUp({ payments: { publicKey: resolve }, inbox, limits: { maxInFlight: 2 } }, clock);
    const posting = Array.from({ length: 5 }, () => t.post("payments", callback("alpha")));
    const forged = t.post("payments", callback("alpha", rotated));
    await noticed();
    expect(calls).toHaveLength(1);
    await calls[0]?.answer(found("alpha"));
    release();
    const codes = (await Promise.all(posting)).map(short).sort();
    expect(codes).toEqual(["200", "200", ...Array(3).fill("503 ERR_OVERLOADED")]);
    expect(short(await forged)).toBe("401 ERR_SIGNATURE_INVALID");
    expect(short(await t.post("payments", callback("alpha")))).toBe("200");
  });
});
