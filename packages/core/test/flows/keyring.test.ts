/** Where a flow's keys come from, and what a resolver's answer and its failures become. */
import { PayhooksError } from "@payhooks/core";
import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import {
  fixedKeyring,
  type KeyHint,
  type KeyResolver,
  type Keyring,
  lazyKeyring,
  resolverError,
  resolverKeyring,
  verifyWithKeys,
} from "../../src/flows/keyring.ts";
import { TIME_IS_UP } from "../../src/time/deadline.ts";

/** A keyring over a resolver, whose keys are texts. */
function resolving(resolver: KeyResolver<string>, maxResolving = 10, clock = fakeClock()) {
  const load = async (keys: string | readonly string[]) => [keys].flat().map((key) => `loaded ${key}`);
  const limits = { clock, acceptTimeoutMs: 1_000, maxResolving };
  return { clock, keyring: resolverKeyring(resolver, load, "payments.publicKey", limits) };
}

const errorOf = async (act: () => unknown): Promise<unknown> => {
  try {
    return await act();
  } catch (error) {
    return error;
  }
};

describe("fixed keys", () => {
  it("belong to no tenant, and are there at once", async () => {
    const keyring = fixedKeyring(["a", "b"]);
    expect(keyring.usesResolver).toBe(false);
    expect(await keyring.prepare()).toEqual(["a", "b"]);
    expect(keyring.find({})).toEqual({ tenant: "", keys: ["a", "b"] });
  });

  it("that are loaded first are loaded once, and again after a failure", async () => {
    let loads = 0;
    const keyring = lazyKeyring(async () => {
      if (++loads === 1) throw new Error("no file");
      return ["a"];
    });
    expect(keyring.usesResolver).toBe(false);
    expect(keyring.find({})).toBeNull();
    expect(await errorOf(() => keyring.prepare())).toMatchObject({ message: "no file" });
    expect(await Promise.all([keyring.prepare(), keyring.prepare()])).toEqual([["a"], ["a"]]);
    expect(keyring.find({})).toEqual({ tenant: "", keys: ["a"] });
    expect(loads).toBe(2);
  });
});

describe("keys that a resolver finds", () => {
  it("belong to the tenant that it names, and are none before", async () => {
    const { keyring } = resolving(({ merchantId }) => ({ tenant: `of ${merchantId}`, keys: ["a", "b"] }));
    expect(keyring.usesResolver).toBe(true);
    expect(await keyring.prepare()).toEqual([]);
    expect(await keyring.find({ merchantId: "m" })).toEqual({
      tenant: "of m",
      keys: ["loaded a", "loaded b"],
    });
  });

  it.each([null, undefined])("are none if it answers %s, which is known for ten seconds", async (answer) => {
    let asked = 0;
    const { clock, keyring } = resolving(() => {
      asked++;
      return answer as null;
    });
    for (let n = 0; n < 3; n++) expect(await keyring.find({ merchantId: "m" })).toBeNull();
    await clock.advance(9_999);
    expect(await keyring.find({ merchantId: "m" })).toBeNull();
    expect(asked).toBe(1);
    await clock.advance(1);
    await keyring.find({ merchantId: "m" });
    expect(asked).toBe(2);
  });

  it.each(["", 5, null, undefined, {}])("are refused with a tenant that is not text: %j", async (tenant) => {
    const { keyring } = resolving(() => ({ tenant: tenant as string, keys: "a" }));
    expect(await errorOf(() => keyring.find({}))).toMatchObject({
      code: "ERR_OPTION_INVALID",
      message:
        "The resolver in payments.publicKey returned no tenant. Return { tenant, keys } with a tenant that is not empty and stays the same while keys rotate.",
    });
  });

  it("are not looked for by a hint of more than 512 characters as JSON", async () => {
    const hints: KeyHint[] = [];
    const { keyring } = resolving((hint) => {
      hints.push(hint);
      return { tenant: "t", keys: "a" };
    });
    const hint = (length: number): KeyHint => ({ merchantId: "m".repeat(length - '[null,""]'.length) });
    expect(await keyring.find(hint(512))).toMatchObject({ tenant: "t" });
    expect(keyring.find(hint(513))).toBeNull();
    expect(hints).toEqual([hint(512)]);
  });

  it("are distinguished by both parts of the hint", async () => {
    const { keyring } = resolving(({ tenant, merchantId }) => ({
      tenant: `${tenant}/${merchantId}`,
      keys: "a",
    }));
    const found = await Promise.all(
      [{}, { tenant: "m" }, { merchantId: "m" }, { tenant: "m", merchantId: "m" }].map((hint) =>
        keyring.find(hint),
      ),
    );
    expect(found.map((one) => one?.tenant)).toEqual([
      "undefined/undefined",
      "m/undefined",
      "undefined/m",
      "m/m",
    ]);
  });

  it("that were found later are not replaced by an answer to an earlier question", async () => {
    const answers: ((keys: string) => void)[] = [];
    const { clock, keyring } = resolving(
      () => new Promise((resolve) => answers.push((keys) => resolve({ tenant: "t", keys }))),
    );
    const first = errorOf(() => keyring.find({}));
    await clock.advance("1s");
    expect(await first).toBe(TIME_IS_UP);
    const second = keyring.find({});
    answers[1]?.("new");
    expect(await second).toMatchObject({ keys: ["loaded new"] });
    answers[0]?.("old");
    await clock.advance(1);
    expect(keyring.find({})).toMatchObject({ keys: ["loaded new"] });
  });

  it("are looked for again after a minute, and an unknown merchant after ten seconds, also if the wall clock is set back", async () => {
    let backMs = 0;
    const steady = fakeClock();
    const clock = { ...steady, now: () => steady.now() - backMs };
    const asked: (string | undefined)[] = [];
    const { keyring } = resolving(
      ({ merchantId }) => {
        asked.push(merchantId);
        return merchantId === "known" ? { tenant: "t", keys: "a" } : null;
      },
      10,
      clock,
    );
    const ask = async (): Promise<void> => {
      asked.length = 0;
      for (const merchantId of ["known", "unknown"]) await keyring.find({ merchantId });
    };
    await ask();
    backMs = 24 * 60 * 60_000;
    await clock.advance(9_999);
    await ask();
    expect(asked).toEqual([]);
    await clock.advance(1);
    await ask();
    expect(asked).toEqual(["unknown"]);
    await clock.advance("50s");
    await ask();
    expect(asked).toEqual(["known", "unknown"]);
  });

  it("are refused as ERR_OVERLOADED, with advice, once the limit of waiting deliveries is reached", async () => {
    const { clock, keyring } = resolving(() => new Promise(() => {}), 2);
    const waiting = [1, 2].map((n) => errorOf(() => keyring.find({ merchantId: `m${n}` })));
    const error = await errorOf(() => keyring.find({ merchantId: "m3" }));
    expect(error).toMatchObject({
      code: "ERR_OVERLOADED",
      message:
        "2 deliveries wait for the resolver in payments.publicKey, which is the limit. It is slow, or flooded with unknown merchants: make it answer from a cache or an index, or raise limits.maxResolving.",
    });
    await clock.advance("1s");
    expect(await Promise.all(waiting)).toEqual([TIME_IS_UP, TIME_IS_UP]);
    // Nobody waits any more.
    const later = errorOf(() => keyring.find({ merchantId: "m4" }));
    await clock.advance("1s");
    expect(await later).toBe(TIME_IS_UP);
  });

  it("of a merchant that was found before wait in a room of their own", async () => {
    let isStuck = false;
    const { clock, keyring } = resolving(({ merchantId }) => {
      if (isStuck) return new Promise(() => {});
      return merchantId === "regular" ? { tenant: "t", keys: "a" } : null;
    }, 1);
    for (const merchantId of ["regular", "stranger"]) await keyring.find({ merchantId });
    await clock.advance("61s");
    isStuck = true;
    const stranger = errorOf(() => keyring.find({ merchantId: "stranger" }));
    const regular = errorOf(() => keyring.find({ merchantId: "regular" }));
    expect(await errorOf(() => keyring.find({ merchantId: "another" }))).toMatchObject({
      code: "ERR_OVERLOADED",
    });
    expect(await errorOf(() => keyring.find({ merchantId: "regular" }))).toMatchObject({
      code: "ERR_OVERLOADED",
    });
    await clock.advance("1s");
    expect(await Promise.all([stranger, regular])).toEqual([TIME_IS_UP, TIME_IS_UP]);
  });
});

describe("a resolver that fails", () => {
  it("is named, with the kind of its error and not its words, which may be a stranger's", () => {
    const cause = new TypeError("no merchant <script>");
    const error = resolverError(cause);
    expect(error).toMatchObject({ code: "ERR_RESOLVER_FAILED" });
    expect(error.cause).toMatchObject({ name: "TypeError", message: "TypeError" });
    expect(error.message).toContain("The key resolver failed: TypeError");
    expect(error.message).not.toContain("script");
  });

  it("is said to be late if it was, with no cause", () => {
    const error = resolverError(TIME_IS_UP);
    expect(error.message).toContain("The key resolver failed: no answer within limits.acceptTimeoutMs");
    expect(error.cause).toBeUndefined();
  });

  it("is not what has failed if too many wait for it", () => {
    const overloaded = new PayhooksError("ERR_OVERLOADED", "10 wait.");
    expect(resolverError(overloaded)).toBe(overloaded);
    expect(resolverError(new PayhooksError("ERR_CLOSING", "closed"))).toMatchObject({
      code: "ERR_RESOLVER_FAILED",
    });
  });
});

describe("a signature that fits none of the keys", () => {
  const [old, fresh] = ["old", "new"].map((key) => ({ tenant: "", keys: [key] })) as [
    { tenant: string; keys: string[] },
    { tenant: string; keys: string[] },
  ];
  /** Verifies a signature made with the new key, and says with which keys it was tried. */
  async function tried(refresh: Keyring<string>["refresh"], signedWith = "new") {
    const keys: (string | undefined)[] = [];
    const keyring: Keyring<string> = {
      ...fixedKeyring(["old"]),
      find: () => old,
      ...(refresh === undefined ? {} : { refresh }),
    };
    const outcome = await verifyWithKeys(keyring, {}, (found) => {
      keys.push(found?.keys[0]);
      return { ok: found?.keys[0] === signedWith };
    });
    return { ...outcome, keys };
  }

  it("is verified once more with keys that were read again, unless they are the same", async () => {
    expect(await tried(async () => fresh)).toEqual({ ok: true, keys: ["old", "new"] });
    expect(await tried(async () => old)).toEqual({ ok: false, keys: ["old"] });
  });

  it("is not verified again if there are no other keys, or they may not be read now", async () => {
    expect(await tried(undefined)).toEqual({ ok: false, keys: ["old"] });
    expect(await tried(() => null)).toEqual({ ok: false, keys: ["old"] });
  });

  it("is nothing that a fitting one waits for", async () => {
    const another = async () => Promise.reject(new Error("not asked"));
    expect(await tried(another, "old")).toEqual({ ok: true, keys: ["old"] });
  });
});
