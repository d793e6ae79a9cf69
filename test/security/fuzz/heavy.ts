/**
 * Deliveries of nearly 64 KiB, the default bound of a body, in the shapes that cost most, and some short ones that cost as
 * much: each of them as the service would sign it, and as a stranger sends it, with a signature of the right length.
 */
import { connectEvent, signCanonicalString } from "@payhooks/core/testing";
import { secondCanonicalString } from "../signing-rule.ts";
import { KEYS, NOW, webhookSignature } from "./signed.ts";

/** One of them. */
export interface Heavy {
  readonly name: string;
  readonly flow: "payments" | "connect";
  readonly signed: boolean;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const MAX_BYTES = 64 * 1024;
/** The rest is for what a genuine delivery has. */
const ROOM = MAX_BYTES - 1_500;
/** Below this a payment callback may have as many parts as fit in. */
const SHORT_ROOM = 8 * 1024 - 1_500;

const TIMESTAMP = `${new Date(NOW).toISOString().slice(0, -1)}123456Z`;
const FIELDS: Readonly<Record<string, string>> = {
  amount: "10.500000",
  callbackUrl: "https://m.example/cb",
  event: "DEPOSIT",
  merchantId: "m-1",
  message: "ok",
  payTxnId: "tx-1",
  providerTxId: "p-1",
  referenceId: "order-1",
  status: "SUCCESS",
  timestamp: TIMESTAMP,
  userId: "u-1",
};

/** As many copies of a text as fit in. */
const fill = (text: string, room: number = ROOM): string =>
  text.repeat(Math.floor(room / Buffer.byteLength(text)));

/** As many different parts as fit in, with a comma between them. */
function parts(make: (n: number) => string, room: number = ROOM): string {
  const made: string[] = [];
  for (let n = 0, length = 0; ; n++) {
    const part = make(n);
    length += part.length + 1;
    if (length > room) return made.join(",");
    made.push(part);
  }
}

const member = (name: string, value: string): string => `${JSON.stringify(name)}:${value}`;

/** A callback with some fields as given, and further members as they are written. */
function callback(fields: Readonly<Record<string, string>>, more = ""): string {
  const members = Object.entries({ ...FIELDS, ...fields }).map(([name, text]) =>
    member(name, JSON.stringify(text)),
  );
  return `{${[...members, ...(more === "" ? [] : [more])].join(",")}}`;
}

/** A text of which every character is another one. */
const different = Array.from({ length: ROOM / 3 }, (_, n) => String.fromCharCode(0x4e00 + n)).join("");
/** So many names, each of which could begin a field. */
const namesOf = (name: string, count: number = ROOM / 8): string =>
  Array.from({ length: count }, (_, n) => `&${name}${n.toString(36).padStart(4, "0")}=`).join("");

const CALLBACKS: Readonly<Record<string, () => string>> = {
  "a long message": () => callback({ message: fill("x") }),
  "a message of &": () => callback({ message: fill("&") }),
  "a message of &a=": () => callback({ message: fill("&a=") }),
  "a message of one long name": () => callback({ message: `&${fill("a")}` }),
  "a reference of one long name": () => callback({ referenceId: `&${fill("a")}` }),
  "a message of escapes": () => callback({}).replace('"ok"', `"${fill("\\u0061")}"`),
  "a text of surrogates, the last one alone": () =>
    callback({}).replace('"ok"', `"${fill("\\ud83d\\ude00")}\\ud800"`),
  "a text of quotes": () => callback({ message: fill('"', ROOM / 2) }),
  "a text of backslashes": () => callback({ message: fill("\\", ROOM / 2) }),
  "a user whose text reads as many fields": () => callback({ userId: `victim${namesOf("v")}` }),
  "a message that reads as many fields": () => callback({ message: `ok${namesOf("n")}` }),
  "a customer's text that reads as many fields": () => callback({ accountName: `x${namesOf("b")}` }),
  "a short reference that reads in many ways": () =>
    callback({ referenceId: `r&status=${namesOf("t", 8)}&timestamp=`, status: "FAILED" }),
  "texts that read in many ways": () =>
    callback({
      callbackUrl: "https://m.example/cb?a=1&event=bad",
      message: "ok&payTxnId=",
      referenceId: "r&status=bad",
      status: "FAILED",
      userId: `u${namesOf("v", 6).replaceAll("=", `=${fill("x", ROOM / 6)}`)}`,
    }),
  "a URL with a long host": () => callback({ callbackUrl: `https://${fill("a")}` }),
  "a URL with a host of different letters": () => callback({ callbackUrl: `https://${different}` }),
  "a URL with a host of marks in the wrong order": () =>
    callback({ callbackUrl: `https://a${fill("\u0301", ROOM / 2)}${fill("\u0316", ROOM / 2)}` }),
  "a URL with a host that is coded": () => callback({ callbackUrl: `https://xn--${fill("4gbrim")}` }),
  "a URL with many users": () => callback({ callbackUrl: `https://${fill(":@")}` }),
  "a URL of many steps": () =>
    callback({ callbackUrl: `https://a/${fill("a/", ROOM / 2)}${fill("../", ROOM / 2)}` }),
  "a URL with a long query": () => callback({ callbackUrl: `https://a/?${fill("a&")}` }),
  "a long number": () => callback({}, member("z", fill("1"))),
  "a long fraction": () => callback({}, member("z", `0.${fill("1")}`)),
  "a long amount": () => callback({ amount: fill("0") }),
  "a long timestamp": () => callback({ timestamp: TIMESTAMP.replace("Z", `${fill("1")}Z`) }),
  "a long event": () => callback({ event: fill("A") }),
  "a long id": () => callback({ payTxnId: fill("a") }),
  "a long name": () => callback({}, member(fill("a"), "1")),
  "white space": () => callback({}, `"z":${fill(" ")}1`),
  "as many fields as may be": () =>
    callback({}, Array.from({ length: 980 }, (_, n) => member(`b${n}`, `"${"v".repeat(50)}"`)).join(",")),
  "as many numbers as may be": () =>
    callback({}, Array.from({ length: 980 }, (_, n) => member(`b${n}`, "1".repeat(50))).join(",")),
  "a short body of fields": () =>
    callback(
      {},
      parts((n) => member(`b${n}`, "0"), SHORT_ROOM),
    ),
  "a short body of arrays": () => callback({}, member("z", `[${parts(() => "[]", SHORT_ROOM)}]`)),
  "a short body of brackets": () =>
    callback({}, member("z", fill("[", SHORT_ROOM / 2) + fill("]", SHORT_ROOM / 2))),
  "a body of fields": () =>
    callback(
      {},
      parts((n) => member(`b${n}`, "0")),
    ),
  "a body of brackets": () => callback({}, member("z", fill("[", ROOM / 2) + fill("]", ROOM / 2))),
};

function webhook(more: string): string {
  const event = connectEvent("settlement.approved", { idempotency_key: "evt_1" }, NOW);
  return `${JSON.stringify(event).slice(0, -1)},${more}}`;
}

const WEBHOOKS: Readonly<Record<string, () => string>> = {
  "a long text": () => webhook(member("z", `"${fill("x")}"`)),
  "a long number": () => webhook(member("z", fill("1"))),
  brackets: () => webhook(member("z", fill("[", ROOM / 2) + fill("]", ROOM / 2))),
  "empty objects": () => webhook(member("z", `[${parts(() => "{}")}]`)),
  "as many objects as may be": () =>
    webhook(
      member("z", `[${Array.from({ length: 2_480 }, (_, n) => `{"${n}":${"1".repeat(15)}}`).join(",")}]`),
    ),
  "as many arrays as may be": () => webhook(member("z", `[${"[],".repeat(2_480)}"${fill("x", ROOM / 2)}"]`)),
  "as many fields as may be": () =>
    webhook(Array.from({ length: 4_980 }, (_, n) => member(`z${n.toString(36)}`, "123")).join(",")),
  "as many numbers as may be": () =>
    webhook(member("z", `[${Array.from({ length: 4_980 }, (_, n) => `2.25073${n}`).join(",")}]`)),
  "names that are numbers": () =>
    webhook(Array.from({ length: 3_600 }, (_, n) => member(`${n * 65_537}`, "0")).join(",")),
  fields: () => webhook(parts((n) => member(`z${n}`, "0"))),
};

const UNSIGNED = Buffer.alloc(256, 1).toString("base64");
const NO_HMAC = `sha256=${"0".repeat(64)}`;

function heavyCallback(name: string, text: string, signed: boolean): Heavy {
  const canonical = signed ? secondCanonicalString(Buffer.from(text)) : "";
  const signature = signed ? signCanonicalString(canonical, KEYS.privateKey) : UNSIGNED;
  const body = Buffer.from(`${text.slice(0, -1)},"signature":"${signature}"}`);
  return { name, flow: "payments", signed, body, headers: { "content-type": "application/json" } };
}

function heavyWebhook(name: string, text: string, signed: boolean): Heavy {
  const body = Buffer.from(text);
  const signature = signed ? webhookSignature(body) : NO_HMAC;
  const headers = { "content-type": "application/json", "x-connect-signature": signature };
  return { name, flow: "connect", signed, body, headers };
}

/** All of them. Throws when one is longer than a body may be, or, unless it is a short one, has room left for more. */
export function heavyDeliveries(): readonly Heavy[] {
  const heavy = [false, true].flatMap((signed) => [
    ...Object.entries(CALLBACKS).map(([name, text]) => heavyCallback(name, text(), signed)),
    ...Object.entries(WEBHOOKS).map(([name, text]) => heavyWebhook(name, text(), signed)),
  ]);
  for (const { name, flow, body } of heavy) {
    const [least, most] = name.startsWith("a short") ? [0, 8 * 1024] : [MAX_BYTES / 2, MAX_BYTES];
    if (body.byteLength < least || body.byteLength > most) {
      throw new RangeError(`${name} (${flow}) has ${body.byteLength} bytes`);
    }
  }
  return heavy;
}
