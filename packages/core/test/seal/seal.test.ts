import { createCipheriv, hkdfSync, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createInbox, decodeRecord, isUnreadable, type RecordStore } from "../../src/inbox/index.ts";
import { openText, sealText } from "../../src/seal/cipher.ts";
import { aesGcm, type SealKey, type SealKeys } from "../../src/seal/index.ts";
import { SealKeyring } from "../../src/seal/keys.ts";
import { sqliteStore } from "../../src/sqlite/index.ts";
import { fakeClock } from "../../src/testing/clock.ts";

const PLACE = "0123456789abcdef0123456789abcdef";
const keyOf = (id: string): SealKey => ({ id, key: randomBytes(32) });
const derived = (key: SealKey) => new SealKeyring([key]).current;

function sealedIn(text: string) {
  const decoded = decodeRecord(text);
  if (!isUnreadable(decoded) || decoded.sealed === undefined) throw new Error("not sealed");
  return decoded.sealed;
}

describe("a sealed text", () => {
  it("comes back as it was, whatever its text is", () => {
    const key = derived(keyOf("k1"));
    for (const text of ["", "3[]", "Grüße €\u0000\n", "x".repeat(100_000)]) {
      expect(openText(sealedIn(sealText(text, PLACE, key)), PLACE, key)).toBe(text);
    }
  });

  it("is AES-256-GCM under a key made by HKDF, as the guide describes it", () => {
    const given = { id: "k1", key: Buffer.from(Array.from({ length: 32 }, (_, at) => at)) };
    const encryption = Buffer.from(hkdfSync("sha256", given.key, "payhooks", "seal records", 32));
    expect(encryption.toString("hex")).toBe(
      "4c4d6ff2cb119d8fafa7aea231c283a755e218dc35b28fa7021220f344d50053",
    );
    const nonce = Buffer.alloc(12, 7);
    const cipher = createCipheriv("aes-256-gcm", encryption, nonce);
    cipher.setAAD(Buffer.from(`payhooks record k1 ${PLACE}`));
    const bytes = Buffer.concat([nonce, cipher.update("3[1]"), cipher.final(), cipher.getAuthTag()]);
    const text = `Sk1:${bytes.toString("base64")}`;
    expect(openText(sealedIn(text), PLACE, derived(given))).toBe("3[1]");
  });

  it("has another nonce each time", () => {
    const key = derived(keyOf("k1"));
    const nonces = Array.from({ length: 2_000 }, () =>
      Buffer.from(sealedIn(sealText("3[]", PLACE, key)).base64, "base64").toString("hex", 0, 12),
    );
    expect(new Set(nonces).size).toBe(2_000);
  });

  it("opens no more after any bit was changed, cut or moved to another record or key", () => {
    const given = keyOf("k1");
    const key = derived(given);
    const sealed = sealedIn(sealText("3[]", PLACE, key));
    const bytes = Buffer.from(sealed.base64, "base64");
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(openText({ ...sealed, base64: changed.toString("base64") }, PLACE, key)).toBeNull();
    }
    for (let length = 0; length < bytes.length; length++) {
      const cut = bytes.toString("base64", 0, length);
      expect(openText({ ...sealed, base64: cut }, PLACE, key)).toBeNull();
    }
    expect(openText({ ...sealed, base64: `${sealed.base64}\n` }, PLACE, key)).toBeNull();
    expect(openText(sealed, PLACE.replace("0", "1"), key)).toBeNull();
    expect(openText(sealed, PLACE, derived({ ...given, id: "k2" }))).toBeNull();
    expect(openText(sealed, PLACE, derived(keyOf("k1")))).toBeNull();
  });
});

describe("the keys of aesGcm", () => {
  it.each([
    ["none", []],
    ["a short one", [{ id: "k1", key: randomBytes(31) }]],
    ["a text", [{ id: "k1", key: "x".repeat(32) }]],
    ["an id with a colon", [{ id: "k:1", key: randomBytes(32) }]],
    ["the same id twice", [keyOf("k1"), keyOf("k1")]],
  ])("are checked: %s", (_, keys) => {
    expect(() => aesGcm(keys as unknown as SealKeys)).toThrow(
      expect.objectContaining({ code: "ERR_OPTION_INVALID" }),
    );
  });
});

/** A file for the time of a test. */
function file(): string {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-seal-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "inbox.db");
}

async function withText(path: string, seal: ReturnType<typeof aesGcm> | undefined, text: string) {
  const inbox = createInbox(sqliteStore(path), { seal });
  try {
    return await inbox.texts.change("note", (old) => ({ answer: old, text }));
  } finally {
    await inbox.close({ graceMs: 1_000 });
  }
}

async function stored(
  path: string,
): Promise<Awaited<ReturnType<NonNullable<RecordStore["scan"]>>>["records"]> {
  const store = sqliteStore(path, { existing: true });
  await store.open();
  try {
    return (await store.scan?.(null, 100))?.records ?? [];
  } finally {
    await store.close();
  }
}

describe("a sealed inbox", () => {
  it("shows nothing in its file, and reads it again", async () => {
    const path = file();
    const seal = aesGcm([keyOf("k1")]);
    expect(await withText(path, seal, "Ada Lovelace")).toBeNull();
    expect(await withText(path, seal, "Grace Hopper")).toBe("Ada Lovelace");
    expect(readFileSync(path, "latin1")).not.toMatch(/Lovelace|Hopper/);
    expect(readFileSync(path, "latin1")).toContain("Sk1:");
  });

  it("is refused without its key, in words that name the key", async () => {
    const path = file();
    await withText(path, aesGcm([keyOf("k-2026")]), "Ada");
    for (const seal of [undefined, aesGcm([keyOf("other")])]) {
      await expect(withText(path, seal, "Grace")).rejects.toThrow(
        expect.objectContaining({
          code: "ERR_INBOX_UNAVAILABLE",
          message: expect.stringContaining('sealed with the key "k-2026"'),
          cause: expect.objectContaining({ code: "ERR_SEAL_KEY_MISSING" }),
        }),
      );
    }
  });

  it("says that a seal is broken if another key has the same id", async () => {
    const path = file();
    await withText(path, aesGcm([keyOf("k1")]), "Ada");
    await expect(withText(path, aesGcm([keyOf("k1")]), "Grace")).rejects.toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ code: "ERR_SEAL_BROKEN" }) }),
    );
  });

  it("reads records in the clear, and seals them on request", async () => {
    const path = file();
    const key = keyOf("k1");
    await withText(path, undefined, "Ada");
    expect(await withText(path, aesGcm([key]), "Grace")).toBe("Ada");
    const store = sqliteStore(path, { existing: true });
    await store.open();
    expect(await aesGcm([key]).reseal(store)).toMatchObject({ keyId: "k1", resealed: 1, current: 0 });
    expect(await aesGcm([key]).reseal(store)).toMatchObject({ resealed: 0, current: 1 });
    await store.close();
    expect((await stored(path)).map(({ record }) => isUnreadable(record) && record.sealed?.keyId)).toEqual([
      "k1",
    ]);
    expect(await withText(path, aesGcm([key]), "Joan")).toBe("Grace");
  });

  it("changes its key while it is used: reseal leaves nothing under the old one", async () => {
    const path = file();
    const [old, current] = [keyOf("old"), keyOf("new")];
    let keys: SealKeys = [old];
    await withText(
      path,
      aesGcm(() => keys),
      "Ada",
    );
    keys = [current, old];
    const seal = aesGcm(() => keys);
    expect(await withText(path, seal, "Grace")).toBe("Ada");
    const store = sqliteStore(path, { existing: true });
    await store.open();
    expect(await seal.reseal(store, { dryRun: true })).toMatchObject({ keyId: "new", resealed: 1 });
    for (const dryRun of ["true", "false", 0, 1, 1n]) {
      const wrong = seal.reseal(store, { dryRun: dryRun as never });
      await expect(wrong).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    }
    expect(await seal.reseal(store)).toMatchObject({ keyId: "new", resealed: 1, missing: {} });
    await store.close();
    expect(await withText(path, aesGcm([current]), "Joan")).toBe("Grace");
  });
});

describe("a function that reads the keys", () => {
  /** An inbox on a clock of its own, and what the function answers at its next calls. */
  function reading(answers: (() => SealKeys | Promise<SealKeys>)[]) {
    const path = file();
    const clock = fakeClock();
    let calls = 0;
    const seal = aesGcm(() => {
      const answer = answers[Math.min(calls++, answers.length - 1)];
      if (answer === undefined) throw new Error("no answer");
      return answer();
    });
    const inbox = createInbox(sqliteStore(path), { seal, clock });
    const notices: unknown[] = [];
    inbox.observe((notice) => notices.push(notice));
    onTestFinished(async () => {
      await inbox.close({ graceMs: 0 });
    });
    const write = (name: string) => inbox.texts.change(name, () => ({ answer: null, text: "Ada" }));
    const keyIds = async (): Promise<readonly unknown[]> => {
      const ids = (await stored(path)).map(({ record }) => isUnreadable(record) && record.sealed?.keyId);
      return [...new Set(ids)].sort();
    };
    return { clock, inbox, notices, write, keyIds, calls: () => calls };
  }

  const never = () => new Promise<never>(() => {});
  const [old, current] = [keyOf("old"), keyOf("new")];

  it("causes an error if it does not answer within 10 s at the start, and is called again", async () => {
    const { clock, inbox, calls, write, keyIds } = reading([never, () => [old]]);
    const opening = inbox.ready().then(
      () => null,
      (error: unknown) => error,
    );
    await clock.advance("10s");
    expect(await opening).toMatchObject({
      code: "ERR_KEY_UNREADABLE",
      message: expect.stringContaining("no keys within 10 s"),
    });
    await write("note");
    expect(calls()).toBe(2);
    expect(await keyIds()).toEqual(["old"]);
  });

  it.each([
    ["does not answer", never, "no keys within 10 s"],
    ["throws", () => Promise.reject(Object.assign(new Error("secret"), { code: "ENOENT" })), "ENOENT"],
  ])("and later %s leaves the old keys, says so once, and is called again", async (_, fails, words) => {
    const { clock, notices, write, keyIds, calls } = reading([() => [old], fails, () => [current, old]]);
    await write("a");
    await clock.advance("61s");
    await write("b");
    await write("c");
    await clock.advance("10s");
    await write("d");
    expect(calls()).toBe(2);
    expect(notices).toEqual([
      {
        type: "keys-unreadable",
        option: "seal",
        code: "ERR_KEY_UNREADABLE",
        error: expect.stringContaining(words),
      },
    ]);
    expect(await keyIds()).toEqual(["old"]);
    await clock.advance("61s");
    await write("e");
    await clock.advance(0);
    await write("f");
    expect(calls()).toBe(3);
    expect(notices).toHaveLength(1);
    expect(await keyIds()).toEqual(["new", "old"]);
  });

  it("is refused, with a message, if it gives other bytes for a known key", async () => {
    const { clock, notices, write, keyIds } = reading([() => [old], () => [keyOf("new"), keyOf("old")]]);
    await write("a");
    await clock.advance("61s");
    await write("b");
    await clock.advance("1s");
    expect(notices).toMatchObject([
      {
        type: "keys-unreadable",
        option: "seal",
        code: "ERR_OPTION_INVALID",
        error: expect.stringContaining('The key "old" of aesGcm has other bytes than before.'),
      },
    ]);
    // Nothing of that answer is used.
    await write("c");
    expect(await keyIds()).toEqual(["old"]);
  });

  it("is waited for by everybody who misses a key, and not by the first alone", async () => {
    const clock = fakeClock();
    let answer: (keys: SealKeys) => void = () => {};
    const answers: (() => SealKeys | Promise<SealKeys>)[] = [
      () => [old],
      () => new Promise<SealKeys>((resolve) => (answer = resolve)),
    ];
    const keyring = new SealKeyring(() => answers.shift()?.() ?? [old]);
    await keyring.ensureRead(clock);
    await clock.advance("10s");
    const found = [1, 2].map(async () => {
      await keyring.refreshForUnknownKey(clock, () => {});
      return keyring.find("new")?.id;
    });
    await clock.advance("20ms");
    answer([current, old]);
    expect(await Promise.all(found)).toEqual(["new", "new"]);
  });
});
