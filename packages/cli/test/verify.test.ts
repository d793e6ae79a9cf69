import { createHmac, createSign } from "node:crypto";
import {
  anyCallbackFields,
  anyConnectEvent,
  connectEvent,
  createTestKeys,
  resplitPair,
  signCanonicalString,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { file } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
const strangers = createTestKeys();
const publicKey = file(keys.publicKey, "pub.pem");
const secret = "whsec_0123456789abcdef";

type Fields = Record<string, string | null>;
const fields = (changes: Fields = {}): Fields =>
  anyCallbackFields({ referenceId: "order-1", ...changes }) as Fields;
const signed = (changes: Fields = {}): Fields & { signature: string } =>
  JSON.parse(Buffer.from(signPaymentCallback(fields(changes), keys.privateKey).rawBody).toString("utf8"));
const body = (value: unknown): string => file(JSON.stringify(value));

interface Explained {
  readonly ok: boolean;
  readonly code: string | null;
  readonly summary: string;
  readonly canonicalString: string | null;
  readonly notes: readonly string[];
  readonly causes: readonly { readonly what: string; readonly fix: string; readonly certain: boolean }[];
}

async function explained(args: readonly string[]): Promise<Explained & { exit: number | null }> {
  const ended = await payhooks(["verify", ...args, "--json"]);
  const [explanation] = ended.json<Explained>();
  if (explanation === undefined) throw new Error(ended.stderr);
  return { ...explanation, exit: ended.code };
}

/** A file of names. */
const names = (callback: object): string => file(JSON.stringify({ callback }), "names.json");
const callback = (path: string, ...more: string[]) => explained(["--key", publicKey, path, ...more]);

describe("payhooks verify --key", () => {
  it("says that a genuine callback is authentic, whatever its white space and order", async () => {
    const genuine = signed();
    const rewritten = file(
      `${JSON.stringify(Object.fromEntries(Object.entries(genuine).reverse()), null, 4)}\r\n`,
    );
    const ended = await payhooks(["verify", "--key", publicKey, rewritten]);
    expect(ended.stdout).toContain("Authentic. DEPOSIT SUCCESS order-1 10.500000");
    expect(ended.stdout).toMatch(/^amount=10\.500000&callbackUrl=https:.*&userId=user-17$/m);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
  });

  it("reads the body from the standard input, and the key from PAY_PUBLIC_KEY", async () => {
    const env = { PAY_PUBLIC_KEY: keys.publicKey.replaceAll("\n", "\\n") };
    const ended = await payhooks(["verify", "-"], { env, input: JSON.stringify(signed()) });
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Authentic.") });
  });

  it("notes that a receiver would refuse a callback that was signed long ago", async () => {
    const ended = await payhooks([
      "verify",
      "--key",
      publicKey,
      body(signed({ timestamp: "2024-01-01T00:00:00Z" })),
    ]);
    expect(ended.stdout).toMatch(/Note: It was signed \d+ days ago/);
    expect(ended.code).toBe(0);
  });

  const urlSafe = (text: string): string =>
    text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  /** Signed again and again until the base64 has both characters that URL-safe base64 writes differently. */
  const withBoth = (): Fields & { signature: string } => {
    for (;;) {
      const one = signed({ providerTxId: `MP-${Math.random()}` });
      if (one.signature.includes("+") && one.signature.includes("/")) return one;
    }
  };

  it.each([
    ["URL-safe base64", (text: string) => urlSafe(text), /URL-safe base64/],
    [
      "line ends in it",
      (text: string) => `${text.slice(0, 76)}\n${text.slice(76)}`,
      /white space or line ends/,
    ],
    ["spaces for +", (text: string) => text.replaceAll("+", " "), /spaces where it had \+/],
    ["no padding", (text: string) => text.replaceAll("=", ""), /lost its padding/],
    ["percent-encoding", (text: string) => encodeURIComponent(text), /percent-encoded/],
  ])("finds a signature with %s", async (_what, change, cause) => {
    const genuine = withBoth();
    const found = await callback(body({ ...genuine, signature: change(genuine.signature) }));
    expect(found).toMatchObject({ exit: 1, code: "ERR_SIGNATURE_MALFORMED" });
    expect(found.causes).toEqual([
      expect.objectContaining({ what: expect.stringMatching(cause), certain: true }),
    ]);
  });

  it("tells another key from a changed body", async () => {
    const stranger = JSON.parse(
      Buffer.from(signPaymentCallback(fields(), strangers.privateKey).rawBody).toString("utf8"),
    );
    const wrongKey = await callback(body(stranger));
    expect(wrongKey).toMatchObject({ exit: 1, code: "ERR_SIGNATURE_INVALID" });
    expect(wrongKey.causes[0]?.what).toContain("made with another key");
    const changed = await callback(body({ ...signed(), amount: "9999.000000" }));
    expect(changed).toMatchObject({ exit: 1, code: "ERR_SIGNATURE_INVALID" });
    expect(changed.causes[0]?.what).toContain("The key is right and the signature is whole");
    expect(changed.canonicalString).toContain("amount=9999.000000&");
  });

  it.each([
    [
      "an amount that became a number",
      (one: Fields) => ({ ...one, amount: 10.5 }),
      /amount lost its six decimal places/,
    ],
    ["an added field", (one: Fields) => ({ ...one, gateway: "eu-1" }), /only documented fields were signed/],
    ["HTML escapes", (one: Fields) => ({ ...one, message: "a &lt;b&gt;" }), /escaped for HTML/],
    [
      "Latin-1 read as UTF-8",
      (one: Fields) => ({ ...one, message: Buffer.from("é", "utf8").toString("latin1") }),
      /Latin-1/,
    ],
  ])("finds %s in a body that was signed without it", async (_what, change, cause) => {
    const message = /HTML/.test(String(cause)) ? "a <b>" : "é";
    const found = await callback(body(change(signed({ message }))));
    expect(found).toMatchObject({ exit: 1, code: "ERR_SIGNATURE_INVALID" });
    expect(found.causes).toEqual([
      expect.objectContaining({ what: expect.stringMatching(cause), certain: true }),
    ]);
  });

  it.each([
    ["signed nulls as null", (one: Fields) => `${canonical(one)}&providerTxId=null`, /name=null/],
    [
      "did not sort",
      (one: Fields) =>
        Object.entries(one)
          .filter(([, v]) => v !== null)
          .map(([n, v]) => `${n}=${v}`)
          .join("&"),
      /order of the body/,
    ],
  ])("finds a sender that %s", async (_what, sign, cause) => {
    const given = { ...fields({ providerTxId: null, timestamp: "2026-01-01T00:00:00Z" }) };
    // Sorted, providerTxId=null comes before referenceId.
    const text = /null/.test(String(cause)) ? canonical({ ...given, providerTxId: "null" }) : sign(given);
    const found = await callback(body({ ...given, signature: signCanonicalString(text, keys.privateKey) }));
    expect(found.causes).toEqual([
      expect.objectContaining({ what: expect.stringMatching(cause), certain: true }),
    ]);
  });

  it("finds a number that was written again, in a body with texts of digits", async () => {
    const given = { ...fields({ referenceId: "1234", providerTxId: "56" }), fee: "10.0" };
    const signature = signCanonicalString(canonical(given), keys.privateKey);
    const found = await callback(body({ ...given, fee: 10, signature }));
    expect(found.causes).toEqual([
      expect.objectContaining({ what: expect.stringContaining("10.0 became 10"), certain: true }),
    ]);
  });

  it("finds a signature in hex", async () => {
    const genuine = signed();
    const found = await callback(
      body({ ...genuine, signature: Buffer.from(genuine.signature, "base64").toString("hex") }),
    );
    expect(found).toMatchObject({
      exit: 1,
      causes: [{ what: "signature is hex, not base64. Otherwise it is right.", certain: true }],
    });
  });

  it("finds another digest than SHA-256", async () => {
    const given = fields();
    const signature = createSign("sha1").update(canonical(given)).sign(keys.privateKey, "base64");
    expect((await callback(body({ ...given, signature }))).causes[0]?.what).toContain("SHA1, not SHA-256");
  });

  it("finds the body that the signature belongs to, among others", async () => {
    const [one, other] = [signed(), signed({ referenceId: "order-2" })];
    const found = await callback(
      body({ ...one, signature: other.signature }),
      file(JSON.stringify(other), "other body.json"),
    );
    expect(found.causes[0]?.what).toMatch(/belongs to another body: .*other body\.json/);
  });

  it.each([
    ["a status that is not well formed", { status: "success" }, "status is not an upper-case name"],
    ["no referenceId", { referenceId: null }, "referenceId is missing or empty"],
    ["& in payTxnId", { payTxnId: "a&b" }, "its fields cannot be told apart in the signed string"],
  ])("says why a callback is held whose signature is valid, with %s", async (_what, change, detail) => {
    const found = await callback(body(signed(change)));
    expect(found).toMatchObject({ exit: 1, code: "ERR_EVENT_MALFORMED", causes: [] });
    expect(found.summary).toBe(`The signature is valid, but the event is held, not run: ${detail}.`);
  });

  it.each([
    [
      "a pair in referenceId",
      { referenceId: "A&s=1" },
      "its signature fits events that differ in referenceId",
      "can be read as more than one event",
    ],
    [
      "two events in the string",
      { callbackUrl: "https://m.example/?x=1&event=PAID&message=x" },
      "its signature fits events that differ in event",
      "can be read as more than one event",
    ],
    [
      "a field that nobody declared",
      { s: "1" },
      "its signature fits events that differ in referenceId (s is not documented",
      "can be read as more than one event",
    ],
    [
      "a name that stands twice",
      { message: "paid&payTxnId=a" },
      "its signed string repeats payTxnId",
      "A value seems to have a field inside it",
    ],
  ])("says in which fields the readings differ, with %s", async (_what, change, detail, doubt) => {
    const found = await callback(body(signed(change)));
    expect(found).toMatchObject({ exit: 1, code: "ERR_EVENT_AMBIGUOUS" });
    expect(found.summary).toContain(`The signature is valid, but the event is held, not run: ${detail}`);
    expect(found.causes).toEqual([
      {
        what: expect.stringContaining(doubt),
        fix: expect.stringContaining("Look the transaction up at the service"),
        certain: true,
      },
    ]);
  });

  it("says so of both bodies of a re-split signature, and shows the canonical string", async () => {
    const { genuine, forged } = resplitPair("order-9", keys.privateKey);
    for (const { rawBody } of [genuine, forged]) {
      const ended = await payhooks(["verify", "--key", publicKey, file(rawBody)]);
      expect(ended.stdout).toMatch(/^ERR_EVENT_AMBIGUOUS$/m);
      expect(ended.stdout).toMatch(/events that differ in .*referenceId/);
      expect(ended.stdout).toContain("Cause: The service escapes nothing in the signed string");
      expect(ended.stdout).toContain("referenceId=order-9&status=SUCCESS&timestamp=");
      expect(ended.code).toBe(1);
    }
  });

  it("takes the names of a deployment", async () => {
    const path = body(signed({ payTxnId: null, acmeTxnId: "tx-1", status: "CANCELLED" }));
    const unnamed = await callback(path);
    expect(unnamed).toMatchObject({ exit: 1, code: "ERR_EVENT_MALFORMED" });
    expect(unnamed.summary).toContain('payTxnId: "acmeTxnId"');
    const file = names({ fields: { payTxnId: "acmeTxnId" }, statuses: { FAILED: ["CANCELLED"] } });
    const named = await callback(path, "--names", file);
    expect(named).toMatchObject({ exit: 0, ok: true, summary: expect.stringContaining("FAILED") });
    // The brand's name no longer stands between the message and the provider's id.
    expect(named.notes[0]).toContain("The event has no providerTxId");
    const always = names({
      fields: { payTxnId: "acmeTxnId", providerTxId: { sent: "always" } },
      statuses: { FAILED: ["CANCELLED"] },
    });
    expect(await callback(path, "--names", always)).toMatchObject({ exit: 0, notes: [] });
  });

  it("takes fields that are declared", async () => {
    const path = body(signed({ s: "eu" }));
    expect(await callback(path)).toMatchObject({ exit: 1, code: "ERR_EVENT_AMBIGUOUS" });
    const declared = await callback(path, "--names", names({ extra: { s: "always" } }));
    expect(declared).toMatchObject({ exit: 0, ok: true, notes: [] });
    const followed = await callback(
      body(signed({ currency: "ETB" })),
      "--names",
      names({ extra: { currency: "sometimes" } }),
    );
    expect(followed).toMatchObject({
      exit: 0,
      notes: [expect.stringContaining("The event has no currency")],
    });
    const wrong = names({ extra: { s: "maybe" } });
    const misspelt = await payhooks(["verify", "--key", publicKey, "--names", wrong, path]);
    expect(misspelt).toMatchObject({ code: 2, stderr: expect.stringContaining('"always" or "sometimes"') });
  });

  it("says that a declared field is missing", async () => {
    const found = await callback(body(signed()), "--names", names({ extra: { zone: "always" } }));
    expect(found).toMatchObject({ exit: 1, code: "ERR_EVENT_AMBIGUOUS" });
    expect(found.summary).toContain('zone is declared as "always" in the names but missing');
    expect(found.causes[0]?.what).toContain("no reading that contains every field");
  });

  it("reads a signed time as a receiver does", async () => {
    const offset = new Date(Date.now() + 3 * 3_600_000).toISOString().replace("Z", "+03:00");
    expect(await callback(body(signed({ timestamp: offset })))).toMatchObject({ exit: 0, notes: [] });
    const old = await callback(body(signed({ timestamp: "2025-01-01T03:00:00+03:00" })));
    expect(old).toMatchObject({ exit: 0, notes: [expect.stringContaining("older than 7 days")] });
    const unknown = await callback(body(signed({ timestamp: offset.slice(0, -6) })));
    expect(unknown).toMatchObject({ exit: 1, code: "ERR_EVENT_MALFORMED" });
    expect(unknown.summary).toContain("held, not run: timestamp is not an ISO 8601 date and time");
  });

  it("takes a callback URL that is known as a whole", async () => {
    const callbackUrl = "https://m.example/?x=1&event=PAID&message=x";
    const path = body(signed({ callbackUrl }));
    expect(await callback(path, "--callback-url", callbackUrl)).toMatchObject({ exit: 0, ok: true });
  });

  it("notes which optional fields an event is without, since they may be forged", async () => {
    const found = await callback(body(signed({ zone: "eu" })));
    expect(found).toMatchObject({ exit: 0, ok: true });
    expect(found.notes).toEqual([expect.stringContaining("The event has no userId")]);
  });

  it("says what was signed, however the body spells it", async () => {
    const { status, ...genuine } = signed();
    const swallowing = { ...genuine, referenceId: `${genuine.referenceId}&status=${status}` };
    const found = await callback(body(swallowing));
    expect(found).toMatchObject({ exit: 0, ok: true });
    expect(found.summary).toMatch(/^DEPOSIT SUCCESS order-1 /);
    expect(found.notes).toEqual([
      expect.stringMatching(/does not spell the signed string .* referenceId, status/),
    ]);
  });

  it.each([
    ["nothing", "", /empty/],
    ["a byte order mark", "\ufeff{}", /byte order mark/],
    ["a whole request", "POST /callbacks HTTP/1.1\r\n\r\n{}", /whole HTTP message/],
    ["a form", "amount=1&status=SUCCESS", /form, not JSON/],
    ["half of a body", '{"amount": "1', /not JSON to its end/],
    ["a body that was encoded twice", JSON.stringify("{}"), /encoded twice/],
    ["an object as text", "[object Object]", /already parsed|written as text/],
  ])("finds %s in place of a body", async (_what, content, cause) => {
    const found = await callback(file(content));
    expect(found).toMatchObject({ exit: 1, code: "ERR_BODY_NOT_JSON" });
    expect(found.causes[0]?.what).toMatch(cause);
  });

  it("recognises a webhook that is verified with a key", async () => {
    expect((await callback(body(connectEvent()))).causes[0]?.fix).toContain("--secret");
  });
});

function canonical(given: Fields): string {
  const pairs = Object.entries(given).filter(([name, value]) => name !== "signature" && value !== null);
  return pairs
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

describe("payhooks verify --secret", () => {
  const event = { ...connectEvent("settlement.approved"), note: "ክፍያ <ok> / €" };
  const compact = JSON.stringify(event);
  const headerOf = (text: string, key = secret): string =>
    signConnectWebhook(Buffer.from(text), key).headers["x-connect-signature"] ?? "";
  const webhook = (text: string, header: string, given = secret, ...others: string[]) =>
    explained(["--secret", given, "--header", header, file(text), ...others]);

  it("says that a genuine webhook is authentic, and keeps the secret to itself", async () => {
    const ended = await payhooks([
      "verify",
      "--secret",
      secret,
      "--header",
      headerOf(compact),
      file(compact),
    ]);
    expect(ended.stdout).toMatch(/Authentic\. settlement\.approved wd_/);
    expect(ended.code).toBe(0);
    expect(ended.stdout + ended.stderr).not.toContain(secret.slice(6));
  });

  it("takes the secret from CONNECT_WEBHOOK_SECRET", async () => {
    const env = { CONNECT_WEBHOOK_SECRET: secret };
    const args = ["verify", "--header", headerOf(compact), "-"];
    expect(await payhooks(args, { env, input: compact })).toMatchObject({ code: 0 });
  });

  const python = compact.replaceAll('":', '": ').replaceAll(',"', ', "');
  it.each([
    ["indented", JSON.stringify(event, null, 2), compact, /indented by two spaces/],
    ["Python's", python, compact, /json\.dumps/],
    ["with a line end", `${compact}\n`, compact, /with a line end \(\\n\) after it/],
    ["without the line end", compact, `${compact}\n`, /without the line end that follows it here/],
    [
      "with \\r\\n",
      JSON.stringify(event, null, 2).replaceAll("\n", "\r\n"),
      JSON.stringify(event, null, 2),
      /with \\r\\n line ends/,
    ],
    [
      "with escaped slashes",
      compact
        .replaceAll("/", "\\/")
        .replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`),
      compact,
      /json_encode/,
    ],
    ["with fractions", compact.replace("125000", "125000.0"), compact, /125000\.0 became 125000/],
    ["in UTF-8", compact, Buffer.from(compact, "utf8").toString("latin1"), /read as Latin-1/],
  ])("finds that the signed body was %s", async (_what, original, saved, cause) => {
    const found = await webhook(saved, headerOf(original));
    expect(found).toMatchObject({ exit: 1, code: "ERR_SIGNATURE_INVALID" });
    expect(found.causes).toEqual([
      expect.objectContaining({ what: expect.stringMatching(cause), certain: true }),
    ]);
  });

  it.each([
    ["white space around the secret", `${secret}\n`, secret, /white space around it that does not belong/],
    ["white space that the sender has", secret, `${secret}\n`, /made with a line end after the secret/],
    ["quotes around the secret", `"${secret}"`, secret, /quotes around it/],
    ["a lost prefix", secret.slice(6), secret, /lost its prefix/],
    ["a sender that cuts the prefix", secret, secret.slice(6), /without its prefix/],
  ])("finds %s, and keeps the secret to itself", async (_what, given, used, cause) => {
    const ended = await payhooks([
      "verify",
      "--secret",
      given,
      "--header",
      headerOf(compact, used),
      file(compact),
      "--json",
    ]);
    expect(ended.json<Explained>()[0]?.causes).toEqual([
      expect.objectContaining({ what: expect.stringMatching(cause), certain: true }),
    ]);
    expect(ended.code).toBe(1);
    expect(ended.stdout + ended.stderr).not.toContain("0123456789abcdef");
  });

  it.each([
    ["capitals", (header: string) => header.toUpperCase().replace("SHA256", "sha256"), /capitals/],
    ["no prefix", (header: string) => header.slice(7), /prefix sha256= is missing/],
    ["its name", (header: string) => `X-Connect-Signature: ${header}`, /its name, quotes or white space/],
    [
      "base64",
      (header: string) => `sha256=${Buffer.from(header.slice(7), "hex").toString("base64")}`,
      /base64, not hex/,
    ],
  ])("finds a header with %s", async (_what, change, cause) => {
    const found = await webhook(compact, change(headerOf(compact)));
    expect(found).toMatchObject({ exit: 1, code: "ERR_SIGNATURE_MALFORMED" });
    expect(found.causes).toEqual([
      expect.objectContaining({ what: expect.stringMatching(cause), certain: true }),
    ]);
  });

  it("finds a header that was sent twice, and one that was cut off", async () => {
    const header = headerOf(compact);
    expect((await webhook(compact, `${header}, ${header}`)).causes[0]?.what).toContain("sent twice");
    expect((await webhook(compact, header.slice(0, -2))).causes[0]?.what).toContain("62 hex digits");
  });

  it("finds the body that the header belongs to, among others", async () => {
    const other = JSON.stringify(connectEvent("connected_account.approved"));
    const found = await webhook(compact, headerOf(other), secret, file(other, "second.json"));
    expect(found.causes[0]?.what).toMatch(/belongs to another body: .*second\.json/);
  });

  it("says what may be wrong when nothing fits", async () => {
    const header = `sha256=${createHmac("sha256", "another one").update(compact).digest("hex")}`;
    const found = await webhook(compact, header);
    expect(found.causes.map(({ certain }) => certain)).toEqual([false, false]);
    expect(found.causes[0]?.what).toContain("The secret is another one");
  });

  it("names what makes an authentic webhook unusable", async () => {
    const wrong = JSON.stringify(anyConnectEvent("settlement.approved", { idempotency_key: 7 }));
    const found = await webhook(wrong, headerOf(wrong));
    expect(found).toMatchObject({ exit: 1, code: "ERR_EVENT_MALFORMED" });
    expect(found.summary).toContain("idempotency_key");
  });
});

describe("payhooks verify, wrongly called", () => {
  it.each([
    [["verify", "body.json"], /no key to verify with/],
    [["verify", "--key", publicKey, "--secret", "x", "body.json"], /give one of them/],
    [["verify", "--key", publicKey, "no-such-file.json"], /no-such-file\.json does not exist/],
    [["verify", "--key", file(keys.privateKey), publicKey], /ERR_KEY_PRIVATE/],
    [["verify", "--key", file("nonsense"), publicKey], /ERR_KEY_UNREADABLE/],
    [["verify", "--header", "sha256=00", publicKey], /--secret is missing/],
    [["verify", "--key", publicKey], /An argument is missing/],
  ])("%j exits with 2 and says why, without a stack trace", async (args, why) => {
    const ended = await payhooks(args);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(why);
    expect(ended.stderr).not.toMatch(/^\s+at /m);
  });
});
