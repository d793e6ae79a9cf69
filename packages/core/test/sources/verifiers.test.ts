import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import {
  anyOf,
  hmac,
  publicKeySignature,
  source,
  token,
  unsafeUnsigned,
  type Verifier,
  type VerifyFunction,
} from "@payhooks/core/sources";
import { describe, expect, it } from "vitest";
import { signedTextReader } from "../../src/sources/signed-text.ts";
import { receiving } from "./receiving.ts";

const SECRET = "a secret of this sender";
const BODY = '{"id":"e-1","type":"paid"}';
const hex = (text: string, secret = SECRET, algorithm = "sha256"): string =>
  createHmac(algorithm, secret).update(text).digest("hex");
const read = ({ body }: { readonly body: { readonly id: string; readonly type: string } }) => ({
  id: body.id,
  name: body.type,
  data: body,
});
const receivingWith = (verify: Verifier | VerifyFunction, options = {}) =>
  receiving(source({ verify, read }), options);

async function answerTo(
  verify: Verifier | VerifyFunction,
  headers: Readonly<Record<string, string>>,
  body = BODY,
) {
  const { post, ran } = receivingWith(verify);
  const { status, body: text } = await post({ body, headers });
  return [status, /ERR_[A-Z_]+/.exec(text)?.[0] ?? "", ran.length];
}

describe("hmac", () => {
  const verify = () => hmac({ header: "X-Signature", secret: SECRET });

  it.each([
    ["a signature that fits", { "x-signature": hex(BODY) }, [200, "", 1]],
    ["upper-case digits", { "x-signature": hex(BODY).toUpperCase() }, [200, "", 1]],
    ["no signature", {}, [401, "ERR_SIGNATURE_MISSING", 0]],
    ["another secret", { "x-signature": hex(BODY, "another") }, [401, "ERR_SIGNATURE_INVALID", 0]],
    ["a shorter signature", { "x-signature": hex(BODY).slice(2) }, [401, "ERR_SIGNATURE_INVALID", 0]],
    ["no hex", { "x-signature": "zz" }, [401, "ERR_SIGNATURE_MALFORMED", 0]],
    [
      "a header that was sent twice",
      { "x-signature": `${hex(BODY)}, ${hex(BODY)}` },
      [401, "ERR_SIGNATURE_MALFORMED", 0],
    ],
  ])("answers %s", async (_what, headers, answer) => {
    expect(await answerTo(verify(), headers)).toEqual(answer);
  });

  it.each(["utf8", "hex", "base64"] as const)(
    "takes a blank entry in a list of secrets, which are %s, as one that is not set",
    async (secretEncoding) => {
      const bytes = Buffer.from(SECRET);
      const secret = [" ", bytes.toString(secretEncoding), "\n"];
      const verifier = hmac({ header: "X-Signature", secret, secretEncoding });
      expect(await answerTo(verifier, { "x-signature": hex(BODY) })).toEqual([200, "", 1]);
    },
  );

  it("covers every byte of the body", async () => {
    expect(await answerTo(verify(), { "x-signature": hex(BODY) }, BODY.replace("e-1", "e-2"))).toEqual([
      401,
      "ERR_SIGNATURE_INVALID",
      0,
    ]);
  });

  it("takes the signatures of both secrets during a rotation, and says which one fitted", async () => {
    const { post, ran, notices } = receivingWith(
      hmac({ header: "x-signature", secret: ["the old secret of it", undefined, SECRET] }),
    );
    expect((await post({ body: BODY, headers: { "x-signature": hex(BODY) } })).status).toBe(200);
    const other = BODY.replace("e-1", "e-2");
    expect(
      (await post({ body: other, headers: { "x-signature": hex(other, "the old secret of it") } })).status,
    ).toBe(200);
    expect(ran.map(({ id }) => id)).toEqual(["e-1", "e-2"]);
    const keys = notices.flatMap((notice) => (notice.type === "accepted" ? [notice.keyId] : []));
    expect(new Set(keys).size).toBe(2);
  });

  it("keeps the tenants of a resolver apart", async () => {
    const secret = ({ tenant }: { readonly tenant?: string }) =>
      tenant === undefined || tenant === "nobody" ? null : { tenant, keys: `the secret of shop ${tenant}` };
    const { post, ran, receiver } = receivingWith(hmac({ header: "x-signature", secret }));
    const sent = (tenant: string, key = tenant) => ({
      body: BODY,
      tenant,
      headers: { "x-signature": hex(BODY, `the secret of shop ${key}`) },
    });
    expect((await post(sent("a"))).status).toBe(200);
    expect((await post(sent("b"))).status).toBe(200);
    expect((await post(sent("a"))).status).toBe(200);
    expect((await post(sent("a", "b"))).status).toBe(401);
    expect((await post(sent("nobody"))).status).toBe(401);
    expect(ran).toHaveLength(2);
    const { events } = await receiver.events.list({ flow: "any", id: "e-1", tenant: "b" });
    expect(events).toHaveLength(1);
    await expect(receiver.events.list({ flow: "any", id: "e-1" })).rejects.toMatchObject({
      code: "ERR_OPTION_MISSING",
    });
  });

  describe("over header fields", () => {
    const signed = () => hmac({ header: "x-signature", over: "{x-id}.{x-kind}.{body}", secret: SECRET });

    it("takes a signed delivery", async () => {
      const headers = { "x-id": "1", "x-kind": "a", "x-signature": hex(`1.a.${BODY}`) };
      expect(await answerTo(signed(), headers)).toEqual([200, "", 1]);
    });

    it("refuses the same text cut in another way", async () => {
      const headers = { "x-id": "1.a", "x-kind": "b", "x-signature": hex(`1.a.b.${BODY}`) };
      expect(await answerTo(signed(), headers)).toEqual([401, "ERR_SIGNATURE_MALFORMED", 0]);
      expect(await answerTo(signed(), { "x-id": "1", "x-signature": hex(`1..${BODY}`) })).toEqual([
        401,
        "ERR_SIGNATURE_MISSING",
        0,
      ]);
    });
  });

  it.each([
    ["::", ":", ":"],
    ["--", "-", "-"],
    ["aba", "ab", "ba"],
  ])("does not let a part of the separator %s move between values", async (between, head, tail) => {
    const verify = () =>
      hmac({ header: "x-signature", over: `{x-shop}${between}{x-id}${between}{body}`, secret: SECRET });
    const sent = (shop: string, id: string) => ({
      "x-shop": shop,
      "x-id": id,
      "x-signature": hex(`${shop}${between}${id}${between}${BODY}`),
    });
    const [one, other] = [sent("acme", `${tail}7`), sent(`acme${head}`, "7")];
    expect(one["x-signature"]).toBe(other["x-signature"]);
    expect(await answerTo(verify(), one)).toEqual([401, "ERR_SIGNATURE_MALFORMED", 0]);
    expect(await answerTo(verify(), other)).toEqual([401, "ERR_SIGNATURE_MALFORMED", 0]);
    expect(await answerTo(verify(), sent("acme", "7"))).toEqual([200, "", 1]);
  });

  it("never takes two requests whose values give the same text", () => {
    const seed = Date.now() % 2 ** 31;
    let state = seed;
    const below = (limit: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
      return Math.floor((state / 2 ** 31) * limit);
    };
    const word = (longest: number): string =>
      Array.from({ length: 1 + below(longest) }, () => "ab:"[below(3)]).join("");
    for (let round = 0; round < 200; round++) {
      const [first, second] = [word(3), word(3)];
      const read = signedTextReader("hmac", {
        header: "x-signature",
        over: `{x-a}${first}{x-b}${second}{body}`,
      });
      const valuesOf = new Map<string, string>();
      for (let sent = 0; sent < 300; sent++) {
        const values = new Map([
          ["x-a", word(4)],
          ["x-b", word(4)],
          ["x-signature", "00"],
        ]);
        const body = Buffer.from(word(4));
        const headers = { get: (name: string) => values.get(name) ?? null };
        const result = read({ method: "POST", path: "/", headers, body, tenant: undefined }, 0);
        if (!result.ok) continue;
        const text = result.parts.map(String).join("");
        const given = JSON.stringify([values.get("x-a"), values.get("x-b"), String(body)]);
        expect(valuesOf.get(text) ?? given, `seed ${seed}, ${first} and ${second} in ${text}`).toBe(given);
        valuesOf.set(text, given);
      }
    }
  });

  describe("with a signed time", () => {
    const timed = () =>
      hmac({
        header: "x-signature",
        format: { kind: "pairs", separator: ",", signature: "v1", timestamp: "t" },
        over: "{timestamp}.{body}",
        secret: SECRET,
      });
    const at = (ms: number) => {
      const seconds = Math.floor(ms / 1000);
      return { "x-signature": `t=${seconds},v1=${"0".repeat(64)},v1=${hex(`${seconds}.${BODY}`)}` };
    };

    it("refuses a delivery that is older or newer than its tolerance, unless it is recorded", async () => {
      const { post, clock, ran } = receivingWith(timed());
      const first = clock.now();
      expect((await post({ body: BODY, headers: at(first - 301_000) })).status).toBe(400);
      expect((await post({ body: BODY, headers: at(first + 302_000) })).body).toContain(
        "ERR_TIMESTAMP_FUTURE",
      );
      expect(ran).toEqual([]);
      expect((await post({ body: BODY, headers: at(first - 200_000) })).status).toBe(200);
      expect((await post({ body: BODY, headers: at(first - 900_000) })).status).toBe(200);
      expect(ran).toHaveLength(1);
    });

    it.each([
      ["two times", (now: number) => `t=1,${at(now)["x-signature"]}`],
      ["no time", (now: number) => at(now)["x-signature"].replace(/^t=\d+,/, "")],
      ["a time in words", (now: number) => at(now)["x-signature"].replace(/^t=\d+/, "t=now")],
    ])("refuses %s", async (_what, header) => {
      const { post, clock } = receivingWith(timed());
      const { status, body } = await post({ body: BODY, headers: { "x-signature": header(clock.now()) } });
      expect([status, body]).toEqual([401, expect.stringContaining("ERR_SIGNATURE_MALFORMED")]);
    });

    it("does not let a digit move from the body to the time", async () => {
      const verify = hmac({
        header: "x-signature",
        over: "{timestamp}{body}",
        timestamp: { header: "x-time" },
        secret: SECRET,
      });
      const { post, clock } = receivingWith(verify);
      const seconds = String(Math.floor(clock.now() / 1000));
      const text = `${seconds}1`;
      const { body } = await post({ body: "1", headers: { "x-time": seconds, "x-signature": hex(text) } });
      expect(body).toContain("ERR_SIGNATURE_MALFORMED");
    });
  });

  it.each([
    ["covers no body", { over: "{timestamp}" }, /\{body\} once/],
    ["covers the body twice", { over: "{body}{body}" }, /\{body\} once/],
    ["has a url that nobody gave", { over: "{url}{body}" }, /no url/],
    ["has a time that nobody named", { over: "{timestamp}.{body}" }, /where it is/],
    ["leaves out the time that it checks", { timestamp: { header: "x-time" } }, /does not cover it/],
    ["does not separate its parts", { over: "{x-id}{x-kind}{body}" }, /nothing separates/],
    ["names a header that is none", { over: "{x id}.{body}" }, /over of hmac/],
    ["has an algorithm that is none", { algorithm: "md5" as "sha1" }, /algorithm of hmac/],
    ["has an unknown option", { secrets: "x" }, /no option "secrets"/],
    [
      "misspells an option of its time",
      { over: "{timestamp}.{body}", timestamp: { header: "x-time", toleranceMS: 1 } },
      /timestamp of hmac has no option "toleranceMS"/,
    ],
    [
      "has a time in another unit",
      { over: "{timestamp}.{body}", timestamp: { header: "x-time", unit: "sec" as "s" } },
      /timestamp\.unit of hmac is "sec"/,
    ],
    ["has another encoding", { encoding: "base-64" as "base64" }, /encoding of hmac is "base-64"/],
    ["has no kind of format", { format: {} as never }, /format of hmac has no kind/],
    [
      "has another kind of format",
      { format: { kind: "lists" } as never },
      /kind of format of hmac is "lists"/,
    ],
    [
      "has a format with an unknown option",
      { format: { kind: "plain", prefixes: "v1=" } as never },
      /format of hmac has no option "prefixes"/,
    ],
    [
      "has a format with an option of another one",
      { format: { kind: "list", separator: " ", prefix: "v1,", signature: "v1" } as never },
      /format of hmac has no option "signature"/,
    ],
    [
      "has a format that leaves one out",
      { format: { kind: "pairs", separator: "," } as never },
      /signature of format of hmac is not text/,
    ],
  ])("is refused if it %s", (_what, options, message) => {
    expect(() => hmac({ header: "x-signature", secret: SECRET, ...options })).toThrow(message);
  });

  it("is refused at the start without a secret", async () => {
    const { receiver } = receivingWith(hmac({ header: "x-signature", secret: undefined }));
    await expect(receiver.start()).rejects.toMatchObject({
      code: "ERR_OPTION_MISSING",
      message: expect.stringContaining("sources.any.secret"),
    });
  });
});

describe("publicKeySignature", () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ed = generateKeyPairSync("ed25519");
  const pem = (key: typeof rsa.publicKey): string => key.export({ format: "pem", type: "spki" }).toString();
  const raw = ed.publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const data = Buffer.from(BODY);
  const cases = [
    ["rsa-sha256", pem(rsa.publicKey), sign("sha256", data, rsa.privateKey)],
    [
      "rsa-pss-sha256",
      pem(rsa.publicKey),
      sign("sha256", data, { key: rsa.privateKey, padding: 6, saltLength: 32 }),
    ],
    ["ecdsa-sha256", pem(ec.publicKey), sign("sha256", data, ec.privateKey)],
    [
      "ecdsa-sha256",
      pem(ec.publicKey),
      sign("sha256", data, { key: ec.privateKey, dsaEncoding: "ieee-p1363" }),
    ],
    ["ed25519", pem(ed.publicKey), sign(null, data, ed.privateKey)],
    ["ed25519", raw.toString("hex"), sign(null, data, ed.privateKey)],
    ["ed25519", `whpk_${raw.toString("base64")}`, sign(null, data, ed.privateKey)],
  ] as const;

  it.each(cases)("verifies %s, and nothing else", async (algorithm, key, signature) => {
    const verify = () => publicKeySignature({ header: "x-signature", encoding: "base64", algorithm, key });
    const headers = { "x-signature": signature.toString("base64") };
    expect(await answerTo(verify(), headers)).toEqual([200, "", 1]);
    expect(await answerTo(verify(), headers, `${BODY} `)).toEqual([401, "ERR_SIGNATURE_INVALID", 0]);
    const wrong = Buffer.from(signature);
    wrong[wrong.length - 1] = (wrong[wrong.length - 1] ?? 0) ^ 1;
    const [status, , runs] = await answerTo(verify(), { "x-signature": wrong.toString("base64") });
    expect([status, runs]).toEqual([401, 0]);
  });

  it("refuses a key of another kind at the start", async () => {
    const { receiver } = receivingWith(
      publicKeySignature({ header: "x-signature", algorithm: "ed25519", key: pem(ec.publicKey) }),
    );
    await expect(receiver.start()).rejects.toMatchObject({ code: "ERR_KEY_UNREADABLE" });
  });
});

describe("token", () => {
  it.each([
    ["a field", token({ header: "x-token", token: SECRET }), { "x-token": SECRET }, [200, "", 1]],
    [
      "another one",
      token({ header: "x-token", token: SECRET }),
      { "x-token": `${SECRET}!` },
      [401, "ERR_SIGNATURE_INVALID", 0],
    ],
    ["none", token({ header: "x-token", token: SECRET }), {}, [401, "ERR_SIGNATURE_MISSING", 0]],
    [
      "Bearer",
      token({ scheme: "Bearer", token: SECRET }),
      { authorization: `Bearer ${SECRET}` },
      [200, "", 1],
    ],
    [
      "Bearer without the word",
      token({ scheme: "Bearer", token: SECRET }),
      { authorization: SECRET },
      [401, "ERR_SIGNATURE_MALFORMED", 0],
    ],
    [
      "Basic",
      token({ scheme: "Basic", token: "shop:long password" }),
      { authorization: `Basic ${btoa("shop:long password")}` },
      [200, "", 1],
    ],
  ])("answers %s", async (_what, verify, headers, answer) => {
    expect(await answerTo(verify, headers)).toEqual(answer);
  });

  it("is not kept with the event", async () => {
    const { post, receiver } = receiving(
      source({ verify: token({ header: "x-token", token: SECRET }), read: () => ({ name: "", data: null }) }),
    );
    await post({ body: BODY, headers: { "x-token": SECRET } });
    const { events } = await receiver.events.list();
    expect(events).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain(SECRET);
  });
});

describe("anyOf", () => {
  const both = () =>
    anyOf(
      hmac({ header: "x-new", secret: SECRET }),
      token({ header: "x-old", token: "the old token of it" }),
    );

  it("takes a delivery that fits one of its verifiers, and says which", async () => {
    const { post, notices, ran } = receivingWith(both());
    expect((await post({ body: BODY, headers: { "x-old": "the old token of it" } })).status).toBe(200);
    expect(notices.find(({ type }) => type === "accepted")).toMatchObject({
      keyId: expect.stringMatching(/^1:/),
    });
    expect(ran).toHaveLength(1);
    expect(await answerTo(both(), { "x-new": hex(BODY) })).toEqual([200, "", 1]);
    expect(await answerTo(both(), { "x-new": hex("x") })).toEqual([401, "ERR_SIGNATURE_INVALID", 0]);
    expect(await answerTo(both(), {})).toEqual([401, "ERR_SIGNATURE_MISSING", 0]);
  });

  it("does not take unsafeUnsigned", () => {
    expect(() =>
      receivingWith(anyOf(hmac({ header: "x-new", secret: SECRET }), unsafeUnsigned({ because: "a test" }))),
    ).toThrow(/unsafeUnsigned/);
  });
});

describe("unsafeUnsigned", () => {
  it("lets everything pass, and its events say so", async () => {
    const { post, ran, notices } = receivingWith(unsafeUnsigned({ because: "the sender signs nothing" }));
    expect((await post({ body: BODY })).status).toBe(200);
    expect(ran).toEqual([expect.objectContaining({ authenticated: false })]);
    expect(notices).toContainEqual(
      expect.objectContaining({ type: "warning", what: expect.stringContaining("anybody can send") }),
    );
  });

  it("needs a reason", () => {
    expect(() => unsafeUnsigned({ because: " " })).toThrow(/reason/);
  });
});

describe("a function of one's own", () => {
  it("may hand on other bytes, and those are read and kept", async () => {
    const content = Buffer.from('{"id":"fetched","type":"paid"}');
    const { post, ran, receiver } = receivingWith(async () => ({
      ok: true,
      keyId: "k",
      content,
      signedHeaders: { "X-Id": "1" },
    }));
    expect((await post({ body: "id=1" })).status).toBe(200);
    expect(ran[0]).toMatchObject({ id: "fetched", headers: { "x-id": "1" }, authenticated: true });
    expect((await receiver.events.list({ flow: "any", id: "fetched" })).events).toHaveLength(1);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no network");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("no network");
      },
    ],
    ["returns true", () => true as never],
    ["returns nothing", () => undefined as never],
    ["says ok in words", () => ({ ok: "yes" }) as never],
    ["gives a code of its own", () => ({ ok: false, code: "ERR_X", why: "" }) as never],
    ["gives a time that is none", () => ({ ok: true, keyId: null, signedAt: new Date(Number.NaN) }) as never],
    ["gives content that is text", () => ({ ok: true, keyId: null, content: "x" }) as never],
  ] as const)("that %s lets nothing pass: 503", async (_what, verify) => {
    const { post, ran } = receivingWith(verify as VerifyFunction);
    const { status, body } = await post({ body: BODY });
    expect([status, body, ran]).toEqual([503, expect.stringContaining("ERR_RESOLVER_FAILED"), []]);
  });

  it("that takes too long is aborted", async () => {
    let aborted = false;
    const { post, clock } = receivingWith(
      (_request, { signal }) => new Promise(() => signal.addEventListener("abort", () => (aborted = true))),
    );
    const answer = post({ body: BODY });
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(2_001);
    expect((await answer).body).toContain("ERR_ACCEPT_TIMEOUT");
    await new Promise((resolve) => setImmediate(resolve));
    expect(aborted).toBe(true);
  });

  it("is called for so many deliveries at one time as may wait for a resolver", async () => {
    const { post } = receivingWith(() => new Promise(() => {}), { limits: { maxResolving: 1 } });
    void post({ body: BODY });
    await new Promise((resolve) => setImmediate(resolve));
    expect((await post({ body: BODY })).body).toContain("ERR_OVERLOADED");
  });
});

describe("a name of a header field", () => {
  it.each([5, "", "x y", null, {}])("that is none is refused at once, and named: %j", (name) => {
    const refused = (make: () => unknown): unknown => {
      try {
        return make();
      } catch (error) {
        return error;
      }
    };
    const given = name as string;
    const read = () => ({ name: "", data: null });
    for (const error of [
      refused(() => token({ header: given, token: SECRET })),
      refused(() => source({ verify: token({ token: SECRET }), read, keepHeaders: [given] })),
    ])
      expect(error).toMatchObject({ code: "ERR_OPTION_INVALID", message: expect.stringContaining("eader") });
  });
});
