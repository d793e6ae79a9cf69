/**
 * What every adapter must do, over real sockets: the same bytes get the same answer, and the same handlers run. A
 * case is a list of answers and a list of effects, written once and compared with every adapter.
 */
import { gzipSync } from "node:zlib";
import { type AnyEvent, verifyConnectWebhook, verifyPaymentCallback } from "@payhooks/core";
import {
  anyCallbackFields,
  anyConnectEvent,
  type CallbackFields,
  forgedCallback,
  resplitPair,
  type SignedDelivery,
  signCanonicalString,
  signConnectWebhook,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { type Answer, chunked, exchange, type HeaderLines, request, Wire } from "../e2e/wire.ts";
import {
  APP_PATH,
  BOUNDED,
  CONNECT_PATH,
  CONTROL_PATH,
  PAYMENT_PATHS,
  PROBE_PATHS,
  TRAP_PATH,
} from "./merchant.ts";

/** A server that has the merchant's application on it. */
export interface Target {
  readonly name: string;
  readonly port: number;
  /** What its own routes do with the body before Payhooks; those that begin with `exact` leave the bytes as they came. */
  readonly traps: readonly string[];
  /** Cases that the framework decides, before any adapter. */
  readonly own?: Readonly<Record<string, OwnAnswer>>;
}

/** What a framework makes of a case, and why that cannot be changed. */
export interface OwnAnswer extends Pick<Outcome, "answers"> {
  /** Those that reach the receiver all the same; none unless given. */
  readonly effects?: readonly string[];
  readonly why: string;
}

/** What is done, and what has to come of it. */
export interface Case {
  readonly name: string;
  /** Sends, and returns the answers in the order in which they were asked for. */
  send(target: Target): Promise<readonly Answer[]>;
  readonly answers: readonly string[] | ((target: Target) => readonly string[]);
  /** In any order. */
  readonly effects: readonly string[] | ((target: Target) => readonly string[]);
}

/** What came of it. */
export interface Outcome {
  readonly answers: readonly string[];
  readonly effects: readonly string[];
}

const JSON_TYPE = "application/json";
const RECEIVED = `200 {"received":true} ${JSON_TYPE}`;
const SIGNATURE_HEADER = "x-connect-signature";
const PAY = PAYMENT_PATHS.plain;

/** An answer as it is compared. Other headers (date, server, …) are the framework's own. */
export function shown({ status, headers, body }: Answer): string {
  const named = ["allow", "retry-after"].flatMap((name) =>
    headers.has(name) ? [`${name}: ${headers.get(name)}`] : [],
  );
  return [`${status}`, body, headers.get("content-type") ?? "", ...named]
    .filter((part) => part !== "")
    .join(" ");
}

function refused(status: number, code: string): string {
  const more = status === 405 ? " allow: POST" : status === 503 ? " retry-after: 5" : "";
  return `${status} {"error":{"code":"${code}"}} ${JSON_TYPE}${more}`;
}

/** Keys and time are the same for all adapters of a run, and so are all bytes that are sent. */
export function conformanceCases(
  { publicKey, privateKey }: TestKeys,
  secret: string,
  now: number,
): readonly Case[] {
  let count = 0;
  const fieldsOf = (fields: CallbackFields): CallbackFields => {
    const n = ++count;
    return anyCallbackFields({ payTxnId: `tx-${n}`, referenceId: `order-${n}`, ...fields }, now);
  };
  const payment = (fields: CallbackFields = {}): SignedDelivery =>
    signPaymentCallback(fieldsOf(fields), privateKey);
  const eventOf = (overrides: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> => {
    const n = ++count;
    const data = {
      object: "settlement",
      id: `wd_${n}`,
      connected_account_id: "cm_1",
      amount: 125000,
      status: "approved",
    };
    return anyConnectEvent("settlement.approved", { idempotency_key: `evt_${n}`, data, ...overrides }, now);
  };
  const webhook = (text: string = JSON.stringify(eventOf())): SignedDelivery =>
    signConnectWebhook(Buffer.from(text), secret);
  /** A webhook with something more in it, written exactly so. */
  const webhookWith = (more: string): SignedDelivery =>
    webhook(JSON.stringify(eventOf()).replace(/\}$/, `,${more}}`));

  const bytesOf = (path: string, { headers, rawBody }: SignedDelivery, more: HeaderLines = []): Buffer =>
    request("POST", path, [...Object.entries(headers), ...more], rawBody);
  const without = (name: string, { headers }: SignedDelivery): HeaderLines =>
    Object.entries(headers).filter(([other]) => other !== name);

  /** What a handler sees of a delivery: verified here without any adapter. */
  const seenOf = ({ rawBody, headers }: SignedDelivery): AnyEvent =>
    SIGNATURE_HEADER in headers
      ? verifyConnectWebhook(rawBody, headers[SIGNATURE_HEADER], { secret }).event
      : verifyPaymentCallback(rawBody, { publicKey }).event;
  const factsOf = (event: AnyEvent): string =>
    "payTxnId" in event
      ? `${event.event} ${event.status} ${event.payTxnId}`
      : `${event.event}  ${event.idempotency_key}`;
  /** Effects of the first copy of a delivery: it is accepted, its handler sees exactly this, and it is through. */
  const ranOnce = (delivery: SignedDelivery, tenant = ""): string[] => {
    const event = seenOf(delivery);
    const facts = factsOf(event);
    return [`accepted ${tenant}${facts}`, `ran ${JSON.stringify(event)}`, `finished ${facts.split(" ")[2]}`];
  };
  const idOf = (delivery: SignedDelivery): string => factsOf(seenOf(delivery)).split(" ")[2] ?? "";
  const duplicateOf = (delivery: SignedDelivery): string => `duplicate ${factsOf(seenOf(delivery))}`;
  const one =
    (bytes: Uint8Array) =>
    async ({ port }: Target): Promise<readonly Answer[]> => [await exchange(port, bytes)];
  const inTurn =
    (all: readonly Uint8Array[]) =>
    async ({ port }: Target): Promise<readonly Answer[]> => {
      const answers: Answer[] = [];
      for (const bytes of all) answers.push(await exchange(port, bytes));
      return answers;
    };
  const atOnce =
    (bytes: Uint8Array, copies: number) =>
    ({ port }: Target): Promise<readonly Answer[]> =>
      Promise.all(Array.from({ length: copies }, () => exchange(port, bytes)));
  const times = (n: number, text: string): string[] => Array.from({ length: n }, () => text);

  /** One delivery that is accepted, and whose handler runs. */
  const accepted = (name: string, path: string, delivery: SignedDelivery, tenant = ""): Case => ({
    name,
    send: one(bytesOf(path, delivery)),
    answers: [RECEIVED],
    effects: ranOnce(delivery, tenant),
  });
  /** Requests that are each refused in the same way. */
  const refusedAs = (name: string, status: number, code: string, all: readonly Uint8Array[]): Case => ({
    name,
    send: inTurn(all),
    answers: times(all.length, refused(status, code)),
    effects: times(all.length, `refused ${status} ${code}`),
  });

  const flipped = (bytes: Uint8Array, at: number): Uint8Array => {
    const copy = Uint8Array.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  const MEGABYTE = Buffer.alloc(1024 * 1024, " ");

  const cold = payment();
  const chunky = webhook();
  const slowly = webhook();
  const parallel = webhook();
  const encoded = payment();
  const failing = payment({ message: "fail once" });
  const failingHandled = payment({ message: "fail once" });
  const rejected = payment({ message: "reject" });
  const quitter = webhook();
  const impatient = payment();
  const repeated = webhook();
  const padded = payment();
  const late = fieldsOf({ payTxnId: "tx-late" });
  const success = signPaymentCallback({ ...late, status: "SUCCESS" }, privateKey);
  const pending = signPaymentCallback({ ...late, status: "PENDING" }, privateKey);
  const resplit = resplitPair("order-victim", privateKey, fieldsOf({ status: "FAILED" }));
  const duplicateNames = payment();
  const kept = webhookWith('"fee":10.0');
  const first = webhook();
  const second = payment();
  const third = webhook();
  const last = payment();
  const forTypes = [
    "application/json",
    "application/json; charset=utf-8",
    "application/vnd.pay+json",
    "APPLICATION/JSON ; foo",
  ].map((type) => [type, webhook()] as const);

  const probes = (paths: { readonly live: string; readonly ready: string }): readonly Uint8Array[] =>
    [paths.live, paths.ready].map((path) => request("GET", path, []));

  return [
    {
      name: "first requests of a cold process, five copies at once",
      send: atOnce(bytesOf(PAY, cold), 5),
      answers: times(5, RECEIVED),
      effects: [...ranOnce(cold), ...times(4, duplicateOf(cold))],
    },
    accepted("payment callback", PAY, payment()),
    accepted("connected-account webhook", CONNECT_PATH, webhook()),
    accepted("text beyond ASCII, payment", PAY, payment({ message: "Überwiesen ✓ ክፍያ 💳" })),
    accepted("text beyond ASCII, webhook", CONNECT_PATH, webhookWith('"note":"ክፍያ 💳 é"')),
    refusedAs("byte order mark", 400, "ERR_BODY_NOT_JSON", [
      bytesOf(CONNECT_PATH, webhook(`\uFEFF${JSON.stringify(eventOf())}`)),
    ]),
    refusedAs("invalid UTF-8", 400, "ERR_BODY_NOT_JSON", [
      bytesOf(
        CONNECT_PATH,
        signConnectWebhook(
          Buffer.concat([
            Buffer.from('{"event":"settlement.approved","x":"'),
            Buffer.of(0xc3, 0x28),
            Buffer.from('"}'),
          ]),
          secret,
        ),
      ),
    ]),
    accepted(
      "white space and CRLF inside and around",
      CONNECT_PATH,
      webhook(`\r\n\t ${JSON.stringify(eventOf(), null, 2).replaceAll("\n", "\r\n")} \r\n\r\n`),
    ),
    accepted("a line's end after the body", CONNECT_PATH, webhook(`${JSON.stringify(eventOf())}\n`)),
    accepted("10.0 stays 10.0, webhook", CONNECT_PATH, webhookWith('"fee":10.0')),
    accepted(
      "exponents, minus zero, big integers, webhook",
      CONNECT_PATH,
      webhookWith('"a":1e2,"b":-0,"c":12345678901234567890123'),
    ),
    ...["10.0", "12345678901234567890123"].map((raw): Case => {
      const fields = fieldsOf({});
      // Undocumented, and where no optional field may end with it.
      const canonical = Object.entries({ ...fields, discount: raw })
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, value]) => `${name}=${value}`)
        .join("&");
      const signature = signCanonicalString(canonical, privateKey);
      const text = JSON.stringify({ ...fields, signature }).replace(/\}$/, `,"discount":${raw}}`);
      const delivery = { rawBody: Buffer.from(text), headers: { "content-type": JSON_TYPE } };
      return accepted(`number ${raw.length > 10 ? "beyond 2^53" : raw} in a signed payment`, PAY, delivery);
    }),
    accepted(
      "escapes that nobody writes",
      CONNECT_PATH,
      webhook(
        JSON.stringify(eventOf())
          .replace('"event"', '"\\u0065vent"')
          .replace("settlement.approved", "settlement\\u002eapproved"),
      ),
    ),
    {
      name: "duplicate names, webhook",
      send: one(bytesOf(CONNECT_PATH, webhookWith('"event":"settlement.declined"'))),
      answers: [RECEIVED],
      effects: ["held malformed"],
    },
    {
      name: "duplicate names, payment",
      send: one(
        bytesOf(PAY, {
          ...duplicateNames,
          rawBody: Buffer.from(
            Buffer.from(duplicateNames.rawBody).toString().replace("{", '{"amount":"99999.000000",'),
          ),
        }),
      ),
      answers: [RECEIVED],
      // What was signed: of two values the last one.
      effects: ranOnce(duplicateNames),
    },
    refusedAs(
      "one bit of the body flipped",
      400,
      "ERR_SIGNATURE_INVALID",
      [0, 20, 100, -1].map((at) => {
        const delivery = webhook();
        const { rawBody } = delivery;
        return bytesOf(CONNECT_PATH, {
          ...delivery,
          rawBody: Buffer.from(flipped(rawBody, at < 0 ? rawBody.byteLength + at : at)),
        });
      }),
    ),
    refusedAs(
      "one digit of the header changed",
      400,
      "ERR_SIGNATURE_INVALID",
      [7, 40, 70].map((at) => {
        const delivery = webhook();
        const signature = delivery.headers[SIGNATURE_HEADER] ?? "";
        const digit = signature[at] === "0" ? "1" : "0";
        const changed = signature.slice(0, at) + digit + signature.slice(at + 1);
        return bytesOf(CONNECT_PATH, {
          ...delivery,
          headers: { ...delivery.headers, [SIGNATURE_HEADER]: changed },
        });
      }),
    ),
    refusedAs(
      "one bit of a payment's signature flipped",
      401,
      "ERR_SIGNATURE_INVALID",
      [0, 100].map((at) => {
        const delivery = payment();
        const { signature, ...fields } = JSON.parse(Buffer.from(delivery.rawBody).toString()) as Record<
          string,
          string
        >;
        const changed = Buffer.from(flipped(Buffer.from(signature ?? "", "base64"), at)).toString("base64");
        return bytesOf(PAY, {
          ...delivery,
          rawBody: Buffer.from(JSON.stringify({ ...fields, signature: changed })),
        });
      }),
    ),
    refusedAs("a payment's amount changed after signing", 401, "ERR_SIGNATURE_INVALID", [
      bytesOf(PAY, forgedCallback(fieldsOf({}), { amount: "9999.000000" }, privateKey)),
    ]),
    refusedAs("signature header missing, or empty", 400, "ERR_SIGNATURE_MISSING", [
      request("POST", CONNECT_PATH, [["Content-Type", JSON_TYPE]], webhook().rawBody),
      request(
        "POST",
        CONNECT_PATH,
        [
          ["Content-Type", JSON_TYPE],
          ["X-Connect-Signature", ""],
        ],
        webhook().rawBody,
      ),
      request(
        "POST",
        CONNECT_PATH,
        [
          ["Content-Type", JSON_TYPE],
          ["X-Connect-Signature", "  "],
        ],
        webhook().rawBody,
      ),
    ]),
    refusedAs("signature header repeated", 400, "ERR_SIGNATURE_MALFORMED", [
      bytesOf(CONNECT_PATH, repeated, [["X-Connect-Signature", repeated.headers[SIGNATURE_HEADER] ?? ""]]),
      bytesOf(CONNECT_PATH, repeated, [["X-Connect-Signature", `sha256=${"0".repeat(64)}`]]),
    ]),
    {
      name: "signature header in another case, with space around",
      send: one(
        request(
          "POST",
          CONNECT_PATH,
          [
            ...without(SIGNATURE_HEADER, first),
            ["X-CONNECT-Signature", ` \t${first.headers[SIGNATURE_HEADER]} `],
          ],
          first.rawBody,
        ),
      ),
      answers: [RECEIVED],
      effects: ranOnce(first),
    },
    refusedAs("payment without a signature", 401, "ERR_SIGNATURE_MISSING", [
      request("POST", PAY, [["Content-Type", JSON_TYPE]], Buffer.from(JSON.stringify(fieldsOf({})))),
    ]),
    {
      name: "a header with bytes beyond ASCII, and one without a value",
      send: one(
        bytesOf(PAY, second, [
          ["X-Name", "caf\u00e9"],
          ["X-Empty", ""],
        ]),
      ),
      answers: [RECEIVED],
      effects: ranOnce(second),
    },
    refusedAs("content type missing, empty, or another", 415, "ERR_CONTENT_TYPE", [
      request("POST", CONNECT_PATH, without("content-type", webhook()), webhook().rawBody),
      ...[
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "json",
        ";",
      ].map((type) => request("POST", CONNECT_PATH, [["Content-Type", type]], webhook().rawBody)),
    ]),
    refusedAs(
      "content type repeated",
      415,
      "ERR_CONTENT_TYPE",
      [
        [JSON_TYPE, JSON_TYPE],
        [JSON_TYPE, "text/plain"],
        ["application/json; charset=utf-8", "text/plain"],
      ].map((types) =>
        // Without a signature: a server that shows one of the values only refuses it all the same.
        request(
          "POST",
          CONNECT_PATH,
          types.map((type) => ["Content-Type", type] as const),
          webhook().rawBody,
        ),
      ),
    ),
    {
      name: "content types that are JSON",
      send: inTurn(
        forTypes.map(([type, delivery]) =>
          request(
            "POST",
            CONNECT_PATH,
            [["Content-Type", type], ...without("content-type", delivery)],
            delivery.rawBody,
          ),
        ),
      ),
      answers: times(forTypes.length, RECEIVED),
      effects: forTypes.flatMap(([, delivery]) => ranOnce(delivery)),
    },
    refusedAs("gzip, and other encodings", 415, "ERR_CONTENT_ENCODING", [
      bytesOf(CONNECT_PATH, { ...webhook(), rawBody: gzipSync(webhook().rawBody) }, [
        ["Content-Encoding", "gzip"],
      ]),
      bytesOf(CONNECT_PATH, webhook(), [["Content-Encoding", "br"]]),
    ]),
    {
      name: "chunked",
      send: one(
        request(
          "POST",
          CONNECT_PATH,
          [...Object.entries(chunky.headers), ["Transfer-Encoding", "chunked"]],
          chunked([
            chunky.rawBody.subarray(0, 1),
            chunky.rawBody.subarray(1, 90),
            chunky.rawBody.subarray(90),
          ]),
        ),
      ),
      answers: [RECEIVED],
      effects: ranOnce(chunky),
    },
    {
      name: "byte by byte",
      async send({ port }) {
        const wire = await Wire.open(port);
        for (const byte of bytesOf(CONNECT_PATH, slowly)) await wire.write(Uint8Array.of(byte));
        const answer = await wire.answer();
        wire.destroy();
        return [answer];
      },
      answers: [RECEIVED],
      effects: ranOnce(slowly),
    },
    refusedAs("empty body, signed", 400, "ERR_BODY_NOT_JSON", [
      bytesOf(CONNECT_PATH, webhook("")),
      request("POST", CONNECT_PATH, Object.entries(webhook("").headers)),
      request(
        "POST",
        CONNECT_PATH,
        [...Object.entries(webhook("").headers), ["Transfer-Encoding", "chunked"]],
        chunked([]),
      ),
      bytesOf(PAY, { rawBody: Buffer.alloc(0), headers: { "content-type": JSON_TYPE } }),
    ]),
    refusedAs("JSON that is no object", 400, "ERR_BODY_NOT_JSON", [
      ...["[]", "null", '"text"', "7", "{", ""].map((text) => bytesOf(CONNECT_PATH, webhook(text))),
    ]),
    {
      name: "a body of exactly the bound",
      send: one(
        bytesOf(PAYMENT_PATHS.bounded, {
          ...padded,
          rawBody: Buffer.concat([
            padded.rawBody,
            Buffer.alloc(BOUNDED.maxBodyBytes - padded.rawBody.byteLength, " "),
          ]),
        }),
      ),
      answers: [RECEIVED],
      effects: ranOnce(padded),
    },
    refusedAs("one byte over the bound, as a length and in chunks", 413, "ERR_BODY_TOO_LARGE", [
      request(
        "POST",
        PAYMENT_PATHS.bounded,
        [["Content-Type", JSON_TYPE]],
        Buffer.alloc(BOUNDED.maxBodyBytes + 1, " "),
      ),
      request(
        "POST",
        PAYMENT_PATHS.bounded,
        [
          ["Content-Type", JSON_TYPE],
          ["Transfer-Encoding", "chunked"],
        ],
        chunked([Buffer.alloc(BOUNDED.maxBodyBytes, " "), Buffer.from(" ")]),
      ),
    ]),
    ...(
      [
        ["Content-Length", String(4 * MEGABYTE.byteLength)],
        ["Transfer-Encoding", "chunked"],
      ] as const
    ).map(
      ([name, value]): Case => ({
        name: `far over the bound, read only once all is sent: ${name}`,
        async send({ port }) {
          const wire = await Wire.open(port);
          void wire.write(
            request("POST", PAYMENT_PATHS.bounded, [
              ["Content-Type", JSON_TYPE],
              [name, value],
            ]),
          );
          for (let n = 0; n < 4; n++) {
            if (name === "Transfer-Encoding")
              await wire.write(Buffer.from(`${MEGABYTE.byteLength.toString(16)}\r\n`));
            await wire.write(MEGABYTE);
            if (name === "Transfer-Encoding") await wire.write(Buffer.from("\r\n"));
          }
          if (name === "Transfer-Encoding") await wire.write(Buffer.from("0\r\n\r\n"));
          const answer = await wire.answer();
          wire.destroy();
          return [answer];
        },
        answers: [refused(413, "ERR_BODY_TOO_LARGE")],
        effects: ["refused 413 ERR_BODY_TOO_LARGE"],
      }),
    ),
    {
      name: "a body that never comes to its end",
      async send({ port }) {
        const wire = await Wire.open(port);
        await wire.write(
          request(
            "POST",
            PAYMENT_PATHS.bounded,
            [
              ["Content-Type", JSON_TYPE],
              ["Content-Length", "1000"],
            ],
            Buffer.from('{"event":'),
          ),
        );
        const answer = await wire.answer();
        wire.destroy();
        return [answer];
      },
      answers: [refused(408, "ERR_BODY_TIMEOUT")],
      effects: ["refused 408 ERR_BODY_TIMEOUT"],
    },
    refusedAs("wrong method", 405, "ERR_METHOD_NOT_ALLOWED", [
      request("GET", PAY, []),
      request("PUT", PAY, [["Content-Type", JSON_TYPE]], payment().rawBody),
      request("PATCH", PAY, [["Content-Type", JSON_TYPE]], payment().rawBody),
      request("DELETE", PAY, []),
    ]),
    {
      name: "HEAD",
      async send({ port }) {
        const wire = await Wire.open(port);
        await wire.write(request("HEAD", PAY, []));
        const answer = await wire.answer({ bodiless: true });
        wire.destroy();
        return [answer];
      },
      answers: [`405 ${JSON_TYPE} allow: POST`],
      effects: ["refused 405 ERR_METHOD_NOT_ALLOWED"],
    },
    {
      name: "OPTIONS",
      send: one(request("OPTIONS", PAY, [])),
      answers: [refused(405, "ERR_METHOD_NOT_ALLOWED")],
      effects: ["refused 405 ERR_METHOD_NOT_ALLOWED"],
    },
    accepted(
      "an encoded query after the path",
      `${PAY}?from=a%26b%3D%20c&${encodeURIComponent("💳")}=%00`,
      encoded,
    ),
    (() => {
      const delivery = payment();
      return accepted(
        "a parameter of the path names the tenant",
        "/shops/shop%2D7/pay?x=%2F",
        delivery,
        "shop-7",
      );
    })(),
    refusedAs("a tenant that nobody knows", 401, "ERR_SIGNATURE_INVALID", [
      bytesOf("/shops/shop-8/pay", payment()),
    ]),
    {
      name: "eight copies at once",
      send: atOnce(bytesOf(CONNECT_PATH, parallel), 8),
      answers: times(8, RECEIVED),
      effects: [...ranOnce(parallel), ...times(7, duplicateOf(parallel))],
    },
    {
      name: "PENDING after SUCCESS",
      send: inTurn([bytesOf(PAY, success), bytesOf(PAY, pending)]),
      answers: [RECEIVED, RECEIVED],
      effects: [...ranOnce(success), "stale DEPOSIT PENDING tx-late"],
    },
    {
      name: "a signature that fits two events",
      send: one(bytesOf(PAY, resplit.forged)),
      answers: [RECEIVED],
      effects: ["held ambiguous"],
    },
    {
      name: "a handler that fails",
      send: inTurn([bytesOf(PAY, failing), bytesOf(PAY, failing)]),
      answers: [RECEIVED, RECEIVED],
      effects: [...ranOnce(failing).slice(0, 2), "retry deposit", duplicateOf(failing)],
    },
    {
      name: "a handler that rejects",
      send: one(bytesOf(PAY, rejected)),
      answers: [RECEIVED],
      effects: [...ranOnce(rejected).slice(0, 2), "held rejected"],
    },
    {
      name: "a handler that fails before the answer, and its redelivery",
      send: inTurn(times(3, "").map(() => bytesOf(PAYMENT_PATHS.handled, failingHandled))),
      answers: [refused(503, "ERR_NOT_HANDLED"), RECEIVED, RECEIVED],
      effects: [
        ...ranOnce(failingHandled),
        ...ranOnce(failingHandled).slice(1, 2),
        "retry deposit",
        "refused 503 ERR_NOT_HANDLED",
        duplicateOf(failingHandled),
        duplicateOf(failingHandled),
      ],
    },
    {
      name: "a sender that goes away in the middle of the body",
      async send({ port }) {
        const bytes = bytesOf(CONNECT_PATH, quitter);
        const wire = await Wire.open(port);
        await wire.write(bytes.subarray(0, bytes.byteLength - 20));
        wire.destroy();
        return [];
      },
      answers: [],
      effects: ["refused 400 ERR_BODY_INCOMPLETE"],
    },
    {
      name: "a sender that never reads its answer",
      async send({ port }) {
        const wire = await Wire.open(port);
        await wire.write(bytesOf(PAY, impatient));
        while (!(await effectsAt(port)).some((effect) => effect.includes(idOf(impatient))));
        wire.destroy();
        return [];
      },
      answers: [],
      effects: ranOnce(impatient),
    },
    {
      name: "a body that was read before",
      send: ({ port, traps }) =>
        Promise.all(
          traps
            .filter((trap) => !trap.startsWith("exact"))
            .map((trap) => exchange(port, bytesOf(TRAP_PATH + trap, kept))),
        ),
      answers: ({ traps }) =>
        traps.filter((trap) => !trap.startsWith("exact")).map(() => refused(500, "ERR_BODY_CONSUMED")),
      effects: ({ traps }) =>
        traps.filter((trap) => !trap.startsWith("exact")).map(() => "refused 500 ERR_BODY_CONSUMED"),
    },
    {
      name: "a body that was read before, its bytes kept",
      async send({ port, traps }) {
        const answers: Answer[] = [];
        for (const trap of traps.filter((one) => one.startsWith("exact"))) {
          answers.push(await exchange(port, bytesOf(TRAP_PATH + trap, kept)));
        }
        return answers;
      },
      answers: ({ traps }) => traps.filter((trap) => trap.startsWith("exact")).map(() => RECEIVED),
      effects: ({ traps }) => {
        const copies = traps.filter((trap) => trap.startsWith("exact")).length;
        return copies === 0 ? [] : [...ranOnce(kept), ...times(copies - 1, duplicateOf(kept))];
      },
    },
    {
      name: "the application's own JSON",
      async send({ port }) {
        const body = Buffer.from(' { "n" : 21.0 } ');
        const answer = await exchange(port, request("POST", APP_PATH, [["Content-Type", JSON_TYPE]], body));
        // How a framework spells the type of its own JSON is its own affair.
        return [{ ...answer, headers: new Map() }];
      },
      answers: ['200 {"doubled":42}'],
      effects: [],
    },
    {
      name: "one connection, refused and accepted in turn",
      async send({ port }) {
        const wire = await Wire.open(port);
        const answers: Answer[] = [];
        const bodies = [
          bytesOf(CONNECT_PATH, { ...third, headers: { ...third.headers, "content-type": "text/plain" } }),
          bytesOf(CONNECT_PATH, third),
          request("PUT", CONNECT_PATH, Object.entries(third.headers), third.rawBody),
          bytesOf(CONNECT_PATH, third),
        ];
        for (const bytes of bodies) {
          await wire.write(bytes);
          answers.push(await wire.answer());
        }
        wire.destroy();
        return answers;
      },
      answers: [refused(415, "ERR_CONTENT_TYPE"), RECEIVED, refused(405, "ERR_METHOD_NOT_ALLOWED"), RECEIVED],
      effects: [
        ...ranOnce(third),
        duplicateOf(third),
        "refused 415 ERR_CONTENT_TYPE",
        "refused 405 ERR_METHOD_NOT_ALLOWED",
      ],
    },
    {
      name: "a receiver that lives and is ready says so",
      send: inTurn(probes(PROBE_PATHS.plain)),
      answers: times(2, `200 {"ok":true} ${JSON_TYPE}`),
      effects: [],
    },
    {
      name: "a receiver that closes",
      async send({ port }) {
        const before = await exchange(port, bytesOf(PAYMENT_PATHS.closing, last));
        await fetch(`http://127.0.0.1:${port}${CONTROL_PATH}close`, { method: "POST" });
        return [before, await exchange(port, bytesOf(PAYMENT_PATHS.closing, last))];
      },
      answers: [RECEIVED, refused(503, "ERR_CLOSING")],
      effects: [...ranOnce(last), "refused 503 ERR_CLOSING"],
    },
    {
      name: "a receiver that has closed neither lives nor is ready",
      send: inTurn(probes(PROBE_PATHS.closing)),
      answers: times(2, `503 {"ok":false,"detail":"the receiver is closing, or closed"} ${JSON_TYPE}`),
      effects: [],
    },
  ];
}

async function effectsAt(port: number): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${port}${CONTROL_PATH}effects`);
  return (await response.json()) as string[];
}

/** Drives the cases against one server, and tells what came of each. */
export class Session {
  readonly target: Target;
  #seen = 0;

  constructor(target: Target) {
    this.target = target;
  }

  expected(one: Case): Outcome {
    const own = this.target.own?.[one.name];
    const pick = (list: Case["answers"]): readonly string[] =>
      typeof list === "function" ? list(this.target) : list;
    if (own !== undefined) return { answers: own.answers, effects: own.effects ?? [] };
    return { answers: pick(one.answers), effects: [...pick(one.effects)].sort() };
  }

  async run(one: Case): Promise<Outcome> {
    const answers = (await one.send(this.target)).map(shown);
    const effects = await this.#effects(this.expected(one).effects.length);
    return { answers, effects };
  }

  /** Effects that came after their case was over. */
  late(): Promise<readonly string[]> {
    return this.#effects(0);
  }

  /** Effects come after the answer: waits until as many are there as there should be. */
  async #effects(count: number): Promise<readonly string[]> {
    const end = Date.now() + 10_000;
    for (;;) {
      const all = await effectsAt(this.target.port);
      if (all.length >= this.#seen + count || Date.now() > end) {
        const fresh = all.slice(this.#seen);
        this.#seen = all.length;
        return fresh.sort();
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
