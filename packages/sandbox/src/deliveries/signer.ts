import { randomBytes } from "node:crypto";
import { isoTime } from "../clock.ts";
import { resplit } from "../faults/forgery.ts";
import type { Fault, FaultKind } from "../faults/kinds.ts";
import { generateSigningKey, type SigningKey } from "../keys/signing-keys.ts";
import type { WireNames } from "../names.ts";
import { type CallbackFields, canonicalString } from "../signature/canonical-string.ts";
import { signCanonicalString, signWebhook } from "../signature/sign.ts";
import type { Message, SignedMessage } from "./delivery.ts";

const DEFAULT_STALE_AGE_MS = 30 * 24 * 3_600_000;
const DEFAULT_FIELD = { name: "channel", value: "sandbox" };

/** The faults that change the bytes or the signature. An attempt with one of them needs a signature of its own. */
const MESSAGE_FAULTS: ReadonlySet<FaultKind> = new Set([
  "bad-signature",
  "wrong-key",
  "stale-timestamp",
  "extra-field",
  "resplit",
]);

export interface Signer {
  /** Signs a message with the present keys. If `stamp` is given, the message gets a new date. */
  sign(message: Message, stamp?: string): SignedMessage;
  /** Signs the message as the faults change it. Null if they do not change it. */
  signWith(message: Message, faults: readonly Fault[]): Promise<SignedMessage | null>;
}

export function createSigner(source: {
  readonly key: () => SigningKey;
  readonly secret: () => string | null;
  readonly now: () => number;
  readonly names: WireNames;
}): Signer {
  const { names } = source;
  let strangerKey: Promise<SigningKey> | undefined;
  const strangerSecret = randomBytes(24).toString("hex");

  /** Signs fields under their names on the wire. */
  const signFields = (fields: CallbackFields, key: SigningKey, sentFields = fields): SignedMessage => {
    const text = canonicalString(fields);
    const signature = signCanonicalString(text, key.privateKey);
    const body = JSON.stringify({ ...sentFields, signature });
    return { body, headers: jsonHeaders(body), canonicalString: text, signature, keyId: key.id };
  };

  const signEnvelope = (
    envelope: Readonly<Record<string, unknown>>,
    secret: string | null,
  ): SignedMessage => {
    const body = JSON.stringify(envelope);
    const signature = secret === null ? null : signWebhook(body, secret);
    const headers = { ...jsonHeaders(body), ...(signature && { [names.signatureHeader]: signature }) };
    return { body, headers, canonicalString: null, signature, keyId: null };
  };

  return {
    sign(message, stamp) {
      if (message.flow === "connect") {
        const occurred = stamp === undefined ? {} : { occurred_at: isoTime(source.now()) };
        return signEnvelope({ ...message.envelope, ...occurred }, source.secret());
      }
      const fields = stamp === undefined ? message.fields : { ...message.fields, timestamp: stamp };
      return signFields(names.fields(fields), source.key());
    },
    async signWith(message, faults) {
      const changing = faults.filter(({ kind }) => MESSAGE_FAULTS.has(kind));
      if (changing.length === 0) return null;
      const kinds = new Set(changing.map(({ kind }) => kind));
      const extra = changing.find(({ kind }) => kind === "extra-field");
      const stale = changing.find(({ kind }) => kind === "stale-timestamp");
      const field = extra && (extra.field ?? DEFAULT_FIELD);
      const extraField = field === undefined ? {} : { [field.name]: field.value };
      const staleTime = stale && source.now() - (stale.ageMs ?? DEFAULT_STALE_AGE_MS);

      let signed: SignedMessage;
      if (message.flow === "connect") {
        const occurred = staleTime === undefined ? {} : { occurred_at: isoTime(staleTime) };
        const secret = kinds.has("wrong-key") ? strangerSecret : source.secret();
        signed = signEnvelope({ ...message.envelope, ...occurred, ...extraField }, secret);
      } else {
        const timestamp =
          staleTime === undefined ? {} : { timestamp: `${isoTime(staleTime).slice(0, -1)}000000Z` };
        const fields = { ...names.fields({ ...message.fields, ...timestamp }), ...extraField };
        if (kinds.has("wrong-key")) strangerKey ??= generateSigningKey(source.now());
        const key = kinds.has("wrong-key") && strangerKey ? await strangerKey : source.key();
        const { genuine, forged } = kinds.has("resplit")
          ? resplit(fields, names.field)
          : { genuine: fields, forged: fields };
        signed = signFields(genuine, key, forged);
      }
      return kinds.has("bad-signature") ? spoil(signed, names.signatureHeader) : signed;
    },
  };
}

function jsonHeaders(body: string): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    "User-Agent": "payhooks-sandbox",
  };
}

/** Changes one character in the middle of the signature. Its form stays valid. */
function spoil(signed: SignedMessage, header: string): SignedMessage {
  if (signed.signature === null) return signed;
  const middle = Math.floor(signed.signature.length / 2);
  const other = signed.signature[middle] === "a" ? "b" : "a";
  const signature = signed.signature.slice(0, middle) + other + signed.signature.slice(middle + 1);
  const replaceSignature = (text: string) =>
    text.replace(JSON.stringify(signed.signature), JSON.stringify(signature));
  const inHeader = Object.hasOwn(signed.headers, header);
  return {
    ...signed,
    signature,
    body: inHeader ? signed.body : replaceSignature(signed.body),
    headers: inHeader ? { ...signed.headers, [header]: signature } : signed.headers,
  };
}
