import { createHmac } from "node:crypto";
import type { Delivery, KeyResolver } from "@payhooks/core";
import {
  anyCallbackFields,
  callbackFields,
  connectEvent,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { KeyHint, TenantKeys } from "../../src/flows/keyring.ts";
import type { PublicKeySource } from "../../src/signature/keys.ts";
import { codeOfReply, deliveryOf, noticed, SECRET, setUp } from "../receiving.ts";

const alpha = createTestKeys();
const beta = createTestKeys();
const rotated = createTestKeys();
const KEYS: Readonly<Record<string, string>> = { alpha: alpha.publicKey, beta: beta.publicKey };

/** Knows merchants "alpha" and "beta", and writes down what it is asked. */
function merchants(): { readonly asked: KeyHint[]; readonly resolve: KeyResolver<PublicKeySource> } {
  const asked: KeyHint[] = [];
  return {
    asked,
    resolve(hint) {
      asked.push(hint);
      const name = hint.tenant ?? hint.merchantId ?? "";
      return Object.hasOwn(KEYS, name) ? { tenant: name, keys: KEYS[name] ?? "" } : null;
    },
  };
}
const callback = (fields: Record<string, string> = {}, keys = alpha) =>
  signPaymentCallback(anyCallbackFields({ merchantId: "alpha", ...fields }), keys.privateKey);
const refusals = (t: Awaited<ReturnType<typeof setUp>>) =>
  t.notices.flatMap((notice) => (notice.type === "refused" ? [notice] : []));

describe("a resolver", () => {
  it("is given the body's merchantId and the adapter's tenant, and nothing else", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve } });
    await t.post("payments", callback());
    await t.post("payments", callback({ merchantId: "m-1" }), { tenant: "alpha" });
    expect(asked).toEqual([{ merchantId: "alpha" }, { tenant: "alpha", merchantId: "m-1" }]);
    expect(t.ran).toHaveLength(2);
  });

  it("only selects keys: with another merchant's hint, the signature does not fit", async () => {
    const t = await setUp({ payments: { publicKey: merchants().resolve } });
    const reply = await t.post("payments", callback({ merchantId: "beta" }));
    expect([reply.status, codeOfReply(reply)]).toEqual([401, "ERR_SIGNATURE_INVALID"]);
    expect(await t.post("payments", callback(), { tenant: "beta" })).toMatchObject({ status: 401 });
    expect(t.ran).toEqual([]);
  });

  it("that knows no such merchant is answered like a bad signature, and the notice says why", async () => {
    const t = await setUp({ payments: { publicKey: merchants().resolve }, connect: { secret: () => null } });
    const unknown = await t.post("payments", callback({ merchantId: "gamma" }));
    const wrong = await t.post("payments", callback({ merchantId: "beta" }));
    expect(unknown).toEqual(wrong);
    expect(refusals(t).map(({ why }) => why)).toEqual([
      expect.stringContaining("unknown tenant"),
      expect.stringContaining("fits none of the keys"),
    ]);
    const webhook = await t.post("connect", signConnectWebhook(connectEvent(), SECRET));
    expect([webhook.status, codeOfReply(webhook)]).toEqual([400, "ERR_SIGNATURE_INVALID"]);
    expect(refusals(t)[2]?.why).toContain("unknown tenant");
  });

  it("that finds the secret of a webhook by the adapter's tenant", async () => {
    const secret: KeyResolver<string> = ({ tenant = "" }) => ({ tenant, keys: `${SECRET}-${tenant}` });
    const t = await setUp({ connect: { secret } });
    const signed = signConnectWebhook(connectEvent(), `${SECRET}-alpha`);
    expect(await t.post("connect", signed, { tenant: "alpha" })).toMatchObject({ status: 200 });
    expect(await t.post("connect", signed, { tenant: "beta" })).toMatchObject({ status: 400 });
    expect(t.ran).toHaveLength(1);
  });

  it("needs the body's merchantId: without one an authentic callback is malformed", async () => {
    const t = await setUp({ payments: { publicKey: () => ({ tenant: "alpha", keys: alpha.publicKey }) } });
    const sent = signPaymentCallback(callbackFields({ merchantId: null }), alpha.privateKey);
    expect(await t.post("payments", sent)).toMatchObject({ status: 200 });
    expect(await t.held()).toMatchObject([
      { reason: "malformed", detail: expect.stringContaining("merchantId") },
    ]);
  });

  it.each<readonly [string, KeyResolver<PublicKeySource>]>([
    [
      "throws",
      () => {
        throw new Error("the database is down");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("the database is down");
      },
    ],
    ["returns a private key", () => ({ tenant: "alpha", keys: alpha.privateKey })],
    ["returns no keys", () => ({ tenant: "alpha", keys: [] })],
    ["returns no tenant", () => ({ tenant: "", keys: alpha.publicKey })],
    ["returns something else", () => ({}) as TenantKeys<string>],
  ])("that %s is answered 503, is not counted as an attack, and is asked again", async (_, resolve) => {
    let broken = true;
    const t = await setUp({
      payments: { publicKey: (...asked) => (broken ? resolve(...asked) : merchants().resolve(...asked)) },
      alerts: { threshold: 1 },
    });
    const sent = callback();
    const reply = await t.post("payments", sent);
    expect([reply.status, codeOfReply(reply)]).toEqual([503, "ERR_RESOLVER_FAILED"]);
    expect(reply.headers["retry-after"]).toBeDefined();
    expect(t.notices.filter(({ type }) => type === "alert")).toEqual([]);
    expect(JSON.stringify(t.notices)).not.toContain(alpha.privateKey.slice(40, 80));
    broken = false;
    expect(await t.post("payments", sent)).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
  });

  it("that outlasts the deadline is answered 503", async () => {
    const t = await setUp({
      payments: { publicKey: () => new Promise<null>(() => {}) },
      limits: { acceptTimeoutMs: 2_000 },
    });
    const posting = t.post("payments", callback());
    await t.clock.advance(1_999);
    let answered = false;
    posting.then(() => {
      answered = true;
    });
    await noticed();
    expect(answered).toBe(false);
    await t.clock.advance(1);
    expect(codeOfReply(await posting)).toBe("ERR_ACCEPT_TIMEOUT");
    expect((await posting).status).toBe(503);
  });
});

describe("an answer of a resolver", () => {
  it("is kept for a minute", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve } });
    for (let i = 0; i < 5; i++) await t.post("payments", callback());
    await t.clock.advance(59_999);
    await t.post("payments", callback());
    expect(asked).toHaveLength(1);
    await t.clock.advance(2);
    await t.post("payments", callback());
    expect(asked).toHaveLength(2);
    expect(t.ran).toHaveLength(7);
  });

  it("is kept for ten seconds if the merchant is unknown", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve } });
    const sent = callback({ merchantId: "gamma" });
    for (let i = 0; i < 5; i++) await t.post("payments", sent);
    await t.clock.advance(9_999);
    await t.post("payments", sent);
    expect(asked).toHaveLength(1);
    await t.clock.advance(2);
    await t.post("payments", sent);
    expect(asked).toHaveLength(2);
  });

  it("is asked for once by deliveries that arrive together", async () => {
    const waiting: (() => void)[] = [];
    const t = await setUp({
      limits: { maxResolving: 1_000 },
      payments: {
        publicKey: () =>
          new Promise((resolve) => {
            waiting.push(() => resolve({ tenant: "alpha", keys: alpha.publicKey }));
          }),
      },
    });
    const sent = [...Array(20)].map(() => callback());
    const posting = [...Array(1_000).keys()].map((n) => t.post("payments", sent[n % 20] ?? callback()));
    await noticed();
    expect(waiting).toHaveLength(1);
    waiting[0]?.();
    const replies = await Promise.all(posting);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1_000);
    expect(waiting).toHaveLength(1);
    expect(t.ran).toHaveLength(20);
  });

  it("is one of a bounded number, and a flood of unknown merchants evicts no known one", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve }, alerts: { threshold: 1_000_000 } });
    await t.post("payments", callback());
    const { rawBody } = callback({ merchantId: "unknown-0000" });
    const text = Buffer.from(rawBody).toString();
    const send = (i: number) => {
      const body = Buffer.from(text.replace("unknown-0000", `unknown-${String(i).padStart(4, "0")}`));
      return t.receiver.payments.receive(
        deliveryOf({ rawBody: body, headers: { "content-type": "application/json" } }),
      );
    };
    for (let i = 0; i < 10_000; i++) await send(i);
    expect(asked).toHaveLength(10_001);
    await t.post("payments", callback());
    expect(asked).toHaveLength(10_001);
    // The last thousand unknown ones are remembered, those before them are not.
    await send(9_000);
    expect(asked).toHaveLength(10_001);
    await send(8_999);
    expect(asked).toHaveLength(10_002);
    expect(t.ran).toHaveLength(2);
  });

  it("is one of a bounded number also if all merchants are known", async () => {
    const asked: string[] = [];
    const t = await setUp({
      payments: {
        publicKey: ({ merchantId = "" }) => {
          asked.push(merchantId);
          return { tenant: merchantId, keys: alpha.publicKey };
        },
      },
    });
    const { rawBody, headers } = callback({ merchantId: "m-0000" });
    const text = Buffer.from(rawBody).toString();
    const send = (i: number) => {
      const body = Buffer.from(text.replace("m-0000", `m-${String(i).padStart(4, "0")}`));
      return t.receiver.payments.receive(deliveryOf({ rawBody: body, headers }));
    };
    for (let i = 0; i <= 1_000; i++) await send(i);
    await send(1_000);
    expect(asked).toHaveLength(1_001);
    await send(0);
    expect(asked).toHaveLength(1_002);
  });

  it("is kept for its own hint: no hint that a sender writes is taken for another", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve }, alerts: { threshold: 1_000_000 } });
    const pairs = [
      ["alpha", 'x","y'],
      ['alpha","x', "y"],
      ["alpha", "null"],
      ["alpha", "__proto__"],
      ["__proto__", "alpha"],
      ["alpha\0", "alpha"],
      ["Alpha", "alpha"],
    ] as const;
    for (const [tenant, merchantId] of pairs) {
      const reply = await t.post("payments", callback({ merchantId }), { tenant });
      expect(reply.status).toBe(tenant === "alpha" ? 200 : 401);
    }
    expect(asked).toHaveLength(pairs.length);
  });

  it("is not changed by deliveries that are refused: known merchants stay known, with the same keys", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve }, alerts: { threshold: 1_000_000 } });
    for (let round = 0; round < 3; round++) {
      expect(await t.post("payments", callback({ merchantId: "alpha" }, beta))).toMatchObject({
        status: 401,
      });
      expect(await t.post("payments", callback({ merchantId: "beta" }, alpha))).toMatchObject({
        status: 401,
      });
      expect(await t.post("payments", callback({ merchantId: "alpha" }, alpha))).toMatchObject({
        status: 200,
      });
      expect(await t.post("payments", callback({ merchantId: "beta" }, beta))).toMatchObject({ status: 200 });
    }
    expect(asked).toEqual([{ merchantId: "alpha" }, { merchantId: "beta" }]);
    const tenants = t.notices.flatMap((notice) => (notice.type === "accepted" ? [notice.tenant] : []));
    expect(tenants).toEqual(["alpha", "beta", "alpha", "beta", "alpha", "beta"]);
  });

  it("is not asked for if the hint is too long, which is unknown at once", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({ payments: { publicKey: resolve } });
    for (const more of [{ tenant: "t".repeat(600) }, {}] as Partial<Delivery>[]) {
      const reply = await t.post("payments", callback({ merchantId: "m".repeat(600) }), more);
      expect(reply.status).toBe(401);
    }
    expect(asked).toEqual([]);
  });

  it("is not asked for if the signature could fit no key", async () => {
    const { asked, resolve } = merchants();
    const t = await setUp({
      payments: { publicKey: resolve },
      connect: {
        secret: () => {
          throw new Error("asked");
        },
      },
    });
    const rawBody = Buffer.from(JSON.stringify({ ...callbackFields(), signature: "not base64" }));
    const headers = { "content-type": "application/json" };
    expect(await t.post("payments", { rawBody, headers })).toMatchObject({ status: 401 });
    expect(await t.post("connect", { rawBody, headers })).toMatchObject({ status: 400 });
    expect(asked).toEqual([]);
  });
});

describe("tenants", () => {
  it("have records of their own: the same payTxnId runs once for each", async () => {
    const t = await setUp({ payments: { publicKey: merchants().resolve } });
    const fields = { payTxnId: "tx-1" };
    const ofAlpha = callback(fields);
    const ofBeta = callback({ ...fields, merchantId: "beta" }, beta);
    for (const sent of [ofAlpha, ofBeta, ofAlpha, ofBeta]) {
      expect(await t.post("payments", sent)).toMatchObject({ status: 200 });
    }
    expect(t.ran).toMatchObject([{ merchantId: "alpha" }, { merchantId: "beta" }]);
    const accepted = t.notices.flatMap((notice) => (notice.type === "accepted" ? [notice.tenant] : []));
    expect(accepted).toEqual(["alpha", "beta"]);
  });

  it("stay the same while keys rotate: a copy signed with the new key is recognised", async () => {
    let keys: string[] = [alpha.publicKey];
    const t = await setUp({ payments: { publicKey: () => ({ tenant: "alpha", keys }) } });
    const fields = { payTxnId: "tx-1", referenceId: "o-1" };
    await t.post("payments", callback(fields));
    keys = [alpha.publicKey, rotated.publicKey];
    await t.clock.advance("61s");
    expect(await t.post("payments", callback(fields, rotated))).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
    expect(t.notices.map(({ type }) => type)).toContain("duplicate");
  });

  it("are not distinguished with fixed keys, whatever the adapter says", async () => {
    const t = await setUp({ payments: { publicKey: alpha.publicKey } });
    const sent = callback();
    for (const tenant of ["a", "b", undefined])
      await t.post("payments", sent, tenant === undefined ? {} : { tenant });
    expect(t.ran).toHaveLength(1);
    expect(t.notices).toContainEqual(expect.objectContaining({ type: "accepted", tenant: "" }));
  });
});

describe("a rotation", () => {
  const keyIds = (t: Awaited<ReturnType<typeof setUp>>) =>
    t.notices.flatMap((notice) => (notice.type === "accepted" ? [notice.keyId] : []));

  it("of public keys accepts each, and the event says which one matched", async () => {
    const both = await setUp({ payments: { publicKey: [alpha.publicKey, rotated.publicKey] } });
    for (const keys of [alpha, rotated, alpha]) await both.post("payments", callback({}, keys));
    expect(await both.post("payments", callback({}, beta))).toMatchObject({ status: 401 });
    const [first, second, third] = keyIds(both);
    expect(first).toMatch(/^[0-9a-f]{16}$/);
    expect(second).not.toBe(first);
    expect(third).toBe(first);
    // A fingerprint does not depend on the list that a key is in, nor on its place.
    const one = await setUp({ payments: { publicKey: rotated.publicKey } });
    await one.post("payments", callback({}, rotated));
    expect(keyIds(one)).toEqual([second]);
    expect(await one.post("payments", callback())).toMatchObject({ status: 401 });
  });

  it("of secrets accepts each, and the event says which one matched", async () => {
    const t = await setUp({ connect: { secret: [SECRET, `${SECRET}-new`] } });
    for (const secret of [SECRET, `${SECRET}-new`, SECRET]) {
      expect(await t.post("connect", signConnectWebhook(connectEvent(), secret))).toMatchObject({
        status: 200,
      });
    }
    expect(await t.post("connect", signConnectWebhook(connectEvent(), `${SECRET}-x`))).toMatchObject({
      status: 400,
    });
    const [first, second, third] = keyIds(t);
    expect(second).not.toBe(first);
    expect(third).toBe(first);
    expect(first).toBe(createHmac("sha256", SECRET).update("payhooks key id").digest("hex").slice(0, 8));
  });
});
