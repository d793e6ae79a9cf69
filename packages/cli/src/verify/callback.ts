import { verify } from "node:crypto";
import { isPayhooksError, type PaymentEvent, type ServiceNames, verifyPaymentCallback } from "@payhooks/core";
import {
  CALLBACK_FIELDS,
  importPublicKeys,
  type VerifyingKey,
  verifyRsaSignature,
} from "@payhooks/core/signature";
import { notesOfAge } from "./age.ts";
import { canonicalOf, canonicalVariants, textsOf } from "./canonical-variants.ts";
import type { Cause, Explanation, OtherBody } from "./explanation.ts";
import { type JsonMember, membersOf } from "./json-text.ts";
import { causeOfNotJson } from "./not-json.ts";
import { isDigestOf, recoverDigest } from "./recovered-digest.ts";

/** The user's options for the deliveries. */
export interface CallbackSettings {
  readonly names: ServiceNames;
  readonly pinnedUrls: readonly string[];
}

/** Verifies a payment callback as a receiver does, and explains a failure. */
export function explainCallback(
  body: Buffer,
  pems: readonly string[],
  settings: CallbackSettings,
  otherBodies: readonly OtherBody[],
): Explanation {
  const keys = importPublicKeys(pems, "--key");
  const members = membersOf(body.toString("utf8"));
  const texts = members === null ? [] : textsOf(members);
  const canonicalString = members === null ? null : canonicalOf(texts);
  const base = { flow: "payments", canonicalString, keyId: null, notes: [] } as const;
  try {
    const { event, keyId, signedAt } = verifyPaymentCallback(body, {
      publicKey: pems,
      names: settings.names,
      expect: settings.pinnedUrls.length === 0 ? {} : { callbackUrl: settings.pinnedUrls },
    });
    const summary = `${event.event} ${event.status} ${event.referenceId} ${event.amount} (${event.payTxnId})`;
    const notes = [...notesOfReading(event, new Map(texts), settings), ...notesOfAge(signedAt)];
    return { ...base, ok: true, code: null, summary, keyId, causes: [], notes };
  } catch (error) {
    if (!isPayhooksError(error)) throw error;
    const { code } = error;
    const failure = { ...base, ok: false, code };
    if (members === null) {
      return { ...failure, summary: "The body is not a JSON object.", causes: [causeOfNotJson(body)] };
    }
    if (code === "ERR_SIGNATURE_MISSING") {
      return {
        ...failure,
        summary: "The body has no signature.",
        causes: [causeOfMissingSignature(members)],
      };
    }
    if (code === "ERR_SIGNATURE_MALFORMED") {
      const causes = causesOfMalformed(members, canonicalString ?? "", pems);
      return { ...failure, summary: "The signature is not canonical base64.", causes };
    }
    if (code === "ERR_SIGNATURE_INVALID") {
      const causes = causesOfInvalid(members, canonicalString ?? "", keys, otherBodies);
      return { ...failure, summary: "The signature does not fit the body under this key.", causes };
    }
    const [, detail = error.message] = /cannot be used: (.*?)\.(?: Keep|$)/.exec(error.message) ?? [];
    const summary = `The signature is valid, but the event is held, not run: ${detail}.`;
    return { ...failure, summary, causes: code === "ERR_EVENT_AMBIGUOUS" ? [causeOfAmbiguity(detail)] : [] };
  }
}

/** Why the signed string cannot be trusted, and what a person can do. */
function causeOfAmbiguity(detail: string): Cause {
  const lookUp = "Look the transaction up at the service, which knows which event is true.";
  if (/ is declared as "always" |^a declared field /.test(detail)) {
    return {
      what: "The signed string has no reading that contains every field that is declared as always sent.",
      fix: "Check the name of the field. If the service no longer sends it with every callback, say in the names that it is sent sometimes.",
      certain: true,
    };
  }
  const doubt = detail.startsWith("its signed string repeats ")
    ? "A value seems to have a field inside it"
    : "So the string can be read as more than one event";
  return {
    what: `The service escapes nothing in the signed string, so an & in it may separate two fields or be part of a value. ${doubt}, and what arrived may be a forgery.`,
    fix: `${lookUp} Keep & out of what you choose yourself, such as referenceId. For an undocumented field that every callback has, declare it as "always" in callback.extra of --names; for an & in your callback URL, --callback-url.`,
    certain: true,
  };
}

function causeOfMissingSignature(members: readonly JsonMember[]): Cause {
  if (members.some(({ name }) => name === "idempotency_key")) {
    return {
      what: "This is a connected-account webhook: it is signed in the header X-Connect-Signature.",
      fix: "Use --secret and --header instead of --key.",
      certain: true,
    };
  }
  return {
    what: "The field signature is missing, null or empty.",
    fix: "Every genuine callback has one. Check whether it was removed when the body was logged or stored.",
    certain: false,
  };
}

function causesOfMalformed(
  members: readonly JsonMember[],
  canonical: string,
  pems: readonly string[],
): Cause[] {
  const value = members.findLast(({ name }) => name === "signature")?.value;
  if (typeof value !== "string") {
    return [
      { what: "signature is not a string.", fix: "Use the body exactly as it arrived.", certain: true },
    ];
  }
  const padBase64 = (text: string): string => text.padEnd(Math.ceil(text.length / 4) * 4, "=");
  const repairs: readonly (readonly [what: string, fix: string, text: string])[] = [
    [
      "signature is URL-safe base64 (- and _ in place of + and /).",
      "The service sends the standard alphabet: something on the way re-encoded it.",
      /[-_]/.test(value) ? padBase64(value.replaceAll("-", "+").replaceAll("_", "/")) : value,
    ],
    [
      "signature has white space or line ends in it.",
      "Base64 must be on one line: do not wrap or copy it by hand.",
      value.replace(/\s+/g, ""),
    ],
    [
      "signature has spaces where it had +.",
      "It went through a form or a URL, which read + as a space.",
      value.replaceAll(" ", "+"),
    ],
    ["signature has lost its padding (=).", "Keep it as it arrived.", padBase64(value)],
    [
      "signature is percent-encoded.",
      "It went through a URL: decode it once.",
      value.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    ],
  ];
  for (const [what, fix, text] of repairs) {
    if (text !== value && verifyRsaSignature(canonical, text, pems) !== null) {
      return [{ what: `${what} Otherwise it is right.`, fix, certain: true }];
    }
  }
  const visible = repairs.filter(([, , text]) => text !== value && isBase64(text));
  if (visible[0] !== undefined) return [{ what: visible[0][0], fix: visible[0][1], certain: false }];
  return [
    {
      what: "signature is damaged or something else.",
      fix: "Use the body exactly as it arrived.",
      certain: false,
    },
  ];
}

function causesOfInvalid(
  members: readonly JsonMember[],
  canonical: string,
  keys: readonly VerifyingKey[],
  otherBodies: readonly OtherBody[],
): Cause[] {
  const value = members.findLast(({ name }) => name === "signature")?.value;
  const signature = Buffer.from(String(value), "base64");
  if (/^[0-9a-f]{16,}$/i.test(String(value))) {
    const isRight = keys.some(({ key }) =>
      verify("sha256", Buffer.from(canonical), key, Buffer.from(String(value), "hex")),
    );
    const what = `signature is hex, not base64.${isRight ? " Otherwise it is right." : ""}`;
    return [{ what, fix: "Write the bytes of the signature as base64.", certain: isRight }];
  }
  const fitting = keys.filter(({ modulusBytes }) => modulusBytes === signature.length);
  if (fitting.length === 0) {
    const bits = keys.map(({ modulusBytes }) => modulusBytes * 8).join(" and ");
    const what = `The signature has ${signature.length * 8} bits, the key ${bits}: it was cut off, or made with another key.`;
    return [
      {
        what,
        fix: "Use the merchant's key from the dashboard: Settings, Security, Security Keys.",
        certain: true,
      },
    ];
  }
  const digest = fitting.map(({ key }) => recoverDigest(signature, key)).find((found) => found !== null);
  if (digest === undefined || digest === null) {
    return [
      {
        what: "The signature was made with another key, or it is damaged: this key does not verify it for any text.",
        fix: "Compare the key with the dashboard (Settings, Security, Security Keys). It may have been rotated, or be of another merchant, or of the sandbox.",
        certain: fitting.length === keys.length,
      },
    ];
  }
  if (digest.algorithm !== "sha256" && isDigestOf(digest, canonical)) {
    const what = `The body is right, but it was signed with ${digest.algorithm.toUpperCase()}, not SHA-256.`;
    return [
      { what, fix: "The one who signs must use SHA-256 (specification, Authentication, 4).", certain: true },
    ];
  }
  for (const { what, fix, text } of canonicalVariants(members)) {
    if (isDigestOf(digest, text)) return [{ what: `The key is right, but ${what}`, fix, certain: true }];
  }
  for (const otherBody of otherBodies) {
    const otherMembers = membersOf(otherBody.bytes.toString("utf8"));
    if (otherMembers !== null && isDigestOf(digest, canonicalOf(textsOf(otherMembers)))) {
      return [
        {
          what: `The signature belongs to another body: ${otherBody.name}.`,
          fix: "Do not mix deliveries.",
          certain: true,
        },
      ];
    }
  }
  return [
    {
      what: "The key is right and the signature is whole, but it was made over other fields: this body was changed after it was signed, or has the signature of another one.",
      fix: "White space and the order of names do not matter here; values do. Compare the canonical string below with what the sender signed. If nothing of yours changed it, it is a forgery.",
      certain: true,
    },
  ];
}

/** Notes for an event that differs from the body as it is spelt. */
function notesOfReading(
  event: PaymentEvent,
  texts: ReadonlyMap<string, string>,
  { names }: CallbackSettings,
): string[] {
  const { fields, extra } = names.callback;
  const differing = CALLBACK_FIELDS.filter((name) => {
    const value = name === "status" ? (event.wireStatus ?? event.status) : event[name];
    return fields[name].sent !== "absent" && texts.get(fields[name].name) !== value;
  });
  const declared = Object.keys(extra).filter((name) => texts.has(name) && !(name in event.extra));
  const leftOut = [...differing.filter((name) => event[name] === undefined), ...declared];
  const respelt = differing.filter((name) => event[name] !== undefined);
  return [
    ...leftOut.map(
      (name) =>
        `The event has no ${name}: the signed string does not say for certain where its value begins and ends.`,
    ),
    ...(respelt.length === 0
      ? []
      : [
          `The body does not spell the signed string as the service does. Handlers get what was signed, which differs in ${respelt.join(", ")}.`,
        ]),
  ];
}

function isBase64(text: string): boolean {
  return text !== "" && Buffer.from(text, "base64").toString("base64") === text;
}
