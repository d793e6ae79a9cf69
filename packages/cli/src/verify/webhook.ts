import { createHmac } from "node:crypto";
import { isPayhooksError, type PayhooksError, verifyConnectWebhook } from "@payhooks/core";
import { importSecrets } from "@payhooks/core/signature";
import { notesOfAge } from "./age.ts";
import { bodyVariants } from "./bodies.ts";
import { type Cause, type Explanation, HOW_TO_KEEP_BYTES, type OtherBody } from "./explanation.ts";
import { readHeader } from "./header.ts";
import { membersOf } from "./json-text.ts";
import { causeOfNotJson } from "./not-json.ts";
import { secretVariants } from "./secrets.ts";

/** Verifies a connected-account webhook as a receiver does, and explains a failure. */
export function explainWebhook(
  body: Buffer,
  header: string | undefined,
  secrets: readonly string[],
  otherBodies: readonly OtherBody[],
): Explanation {
  const base = { flow: "connect", canonicalString: null, keyId: null, notes: [] } as const;
  if (header === undefined || header.trim() === "") {
    const isCallback = membersOf(body.toString("utf8"))?.some(({ name }) => name === "payTxnId") === true;
    const what = isCallback
      ? "This is a payment callback: it is signed in its field signature."
      : "No --header was given.";
    const fix = isCallback
      ? "Use --key instead of --secret."
      : "Pass the value of X-Connect-Signature: sha256= and 64 hex digits.";
    return {
      ...base,
      ok: false,
      code: "ERR_SIGNATURE_MISSING",
      summary: "There is no signature.",
      causes: [{ what, fix, certain: true }],
    };
  }
  const refusals = secrets.flatMap((secret) => secretErrorOf(secret) ?? []);
  const usable = secrets.filter((secret) => secretErrorOf(secret) === null);
  const { digest, flaw } = readHeader(header);
  if (usable.length === secrets.length && flaw === null) {
    try {
      const { event, keyId, signedAt } = verifyConnectWebhook(body, header, { secret: usable });
      const summary = `${event.event} ${event.data.id} (${event.idempotency_key})`;
      return { ...base, ok: true, code: null, summary, keyId, causes: [], notes: notesOfAge(signedAt) };
    } catch (error) {
      if (!isPayhooksError(error)) throw error;
      const { code, message } = error;
      if (code === "ERR_BODY_NOT_JSON") {
        return {
          ...base,
          ok: false,
          code,
          summary: "The body is not a JSON object.",
          causes: [causeOfNotJson(body)],
        };
      }
      if (code !== "ERR_SIGNATURE_INVALID") {
        const [, detail] = /cannot be used: (.*?)\.(?: Keep|$)/.exec(message) ?? [];
        const summary = `The signature is valid, but the event is held, not run: ${detail ?? message}.`;
        return { ...base, ok: false, code, summary, causes: [] };
      }
    }
  }
  const [refusal] = refusals;
  const code = refusal?.code ?? (flaw === null ? "ERR_SIGNATURE_INVALID" : "ERR_SIGNATURE_MALFORMED");
  const summary =
    refusal === undefined
      ? (flaw?.summary ?? "The header does not fit the body under this secret.")
      : `A receiver refuses the secret: ${refusal.message}`;
  return {
    ...base,
    ok: false,
    code,
    summary,
    causes: causesOf(body, digest, secrets, otherBodies, flaw?.cause ?? null),
  };
}

/** Why a receiver would not start with a secret, or null. */
function secretErrorOf(secret: string): PayhooksError | null {
  try {
    importSecrets(secret);
    return null;
  } catch (error) {
    if (isPayhooksError(error)) return error;
    throw error;
  }
}

function causesOf(
  body: Buffer,
  digest: string | null,
  secrets: readonly string[],
  otherBodies: readonly OtherBody[],
  headerCause: Cause | null,
): Cause[] {
  const knownCauses = headerCause === null ? [] : [headerCause];
  if (digest === null) return knownCauses;
  const fits = (secret: string | Buffer, bytes: Buffer): boolean =>
    createHmac("sha256", secret).update(bytes).digest("hex") === digest;
  const candidates = secrets.flatMap((secret) => [...secretVariants(secret)]);
  for (const { cause, key } of candidates) {
    if (fits(key, body)) {
      const candidateCauses = cause === null ? [] : [cause];
      return [...knownCauses.map((knownCause) => ({ ...knownCause, certain: true })), ...candidateCauses];
    }
  }
  for (const { cause, key } of candidates) {
    for (const { what, bytes } of bodyVariants(body)) {
      if (!fits(key, bytes)) continue;
      const bodyCause = {
        what: `The signature was made over the body ${what}.`,
        fix: HOW_TO_KEEP_BYTES,
        certain: true,
      };
      return [...knownCauses, ...(cause === null ? [] : [cause]), bodyCause];
    }
    for (const otherBody of otherBodies) {
      if (!fits(key, otherBody.bytes)) continue;
      const what = `The header belongs to another body: ${otherBody.name}.`;
      return [
        ...knownCauses,
        { what, fix: "Do not mix headers and bodies of different deliveries.", certain: true },
      ];
    }
  }
  return [
    ...knownCauses,
    {
      what: "The secret is another one, or the header belongs to another delivery.",
      fix: "Compare the secret with webhook_secret in the webhook settings. It may have been changed, or be of another environment. Pass further bodies after this one to see whether the header belongs to one of them.",
      certain: false,
    },
    {
      what: "The body was changed in a way that was not among those tried (line ends, encodings, ten ways to write JSON).",
      fix: HOW_TO_KEEP_BYTES,
      certain: false,
    },
  ];
}
