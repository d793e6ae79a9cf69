import { createHash, timingSafeEqual } from "node:crypto";
import type { Keys } from "../flows/keys.ts";
import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { invalidOptionError, PayhooksError } from "../protocol/errors.ts";
import { importSecrets, type SecretInput, type VerifyingSecret } from "../signature/keys.ts";
import { isThenable } from "../time/awaitable.ts";
import { callWithDeadline } from "../time/deadline.ts";
import { keyedVerifier, type RequestClaim } from "./keyed-verifier.ts";
import { toHeaderName } from "./signed-text.ts";
import {
  type AuthenticVerdict,
  type InauthenticVerdict,
  refuse,
  type SourceRequest,
  type Verifier,
  type VerifierFactory,
  type VerifyFunction,
  type VerifyResult,
  verifierFactoryOf,
  verifierOf,
} from "./verifier.ts";

/** Options of {@link token}. */
export interface TokenOptions {
  /** The header field. Default `authorization`. */
  readonly header?: string | undefined;
  /**
   * `Bearer`: the token follows this word. `Basic`: it is `user:password`, and arrives as base64. Default: the field is
   * the token.
   */
  readonly scheme?: "Bearer" | "Basic" | undefined;
  readonly token: Keys<SecretInput>;
}

/**
 * Verifies a secret that the sender repeats in each request. It covers nothing: anybody who reads one request can send others.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`. The token is checked at the start.
 * @example token({ header: "x-gitlab-token", token: process.env.GITLAB_TOKEN })
 */
export function token(options: TokenOptions): Verifier {
  checkNames("token", options, { header: true, scheme: true, token: true });
  const { header = "authorization", scheme } = options;
  checkChoice("scheme of token", scheme, { Bearer: true, Basic: true });
  const name = toHeaderName("token", "header", header);
  function read({ headers }: SourceRequest): SentToken | InauthenticVerdict {
    const value = headers.get(name) ?? "";
    if (value === "") return refuse("ERR_SIGNATURE_MISSING", `there is no header ${name}`);
    const prefix = scheme === undefined ? "" : `${scheme} `;
    if (value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) {
      return refuse("ERR_SIGNATURE_MALFORMED", `${name} does not begin with ${scheme}`);
    }
    return { ...UNSIGNED_CLAIM, sent: value.slice(prefix.length) };
  }
  return keyedVerifier(
    {
      keys: options.token,
      name: "token",
      load: importSecrets,
      refusal: "the token is none of the tokens",
    },
    read,
    ({ sent }, secrets) => {
      const claimed = digestOf(Buffer.from(sent, scheme === "Basic" ? "base64" : "utf8"));
      let matchingSecret: VerifyingSecret | null = null;
      for (const secret of secrets) {
        if (timingSafeEqual(digestOf(secret.key.export()), claimed)) matchingSecret = secret;
      }
      return matchingSecret;
    },
  );
}

/** A token as it was sent. */
interface SentToken extends RequestClaim {
  readonly sent: string;
}

const UNSIGNED_CLAIM = {
  ok: true,
  signedAt: null,
  outsideWindow: null,
  content: null,
  signedHeaders: {},
  signature: null,
} as const;

/** Digests have one length, so that comparing them reveals nothing about the length of a token. */
function digestOf(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/**
 * During a change of scheme: the first verifier that fits. At most four. The key's id begins with the position of the
 * one that fitted.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for anything but two to four verifiers.
 * @example anyOf(hmac({ header: "x-signature", secret }), token({ token: process.env.OLD_TOKEN }))
 */
export function anyOf(...verifiers: readonly [Verifier, Verifier, ...Verifier[]]): Verifier {
  const factories = verifiers.map(verifierFactoryOf);
  if (factories.length < 2 || factories.length > 4 || factories.some((bind) => bind === null)) {
    throw invalidOptionError(
      "anyOf was not given two to four verifiers.",
      "Give what hmac, publicKeySignature or token returned.",
    );
  }
  return verifierOf((option, limits) => {
    const boundVerifiers = (factories as readonly VerifierFactory[]).map((bind) => bind(option, limits));
    if (boundVerifiers.some(({ isOpen }) => isOpen)) {
      throw invalidOptionError(
        `${option} lists unsafeUnsigned beside other verifiers.`,
        "Then anything passes. Remove it.",
      );
    }
    async function verifyLater(
      verifying: Promise<AuthenticVerdict | InauthenticVerdict>,
      position: number,
      request: SourceRequest,
      now: number,
      bestRefusal: InauthenticVerdict | null,
    ): Promise<AuthenticVerdict | InauthenticVerdict> {
      const result = await verifying;
      if (result.ok) return withPosition(result, position);
      return tryFrom(position + 1, request, now, betterOf(bestRefusal, result));
    }
    function tryFrom(
      from: number,
      request: SourceRequest,
      now: number,
      refusalSoFar: InauthenticVerdict | null,
    ): AuthenticVerdict | InauthenticVerdict | Promise<AuthenticVerdict | InauthenticVerdict> {
      let bestRefusal = refusalSoFar;
      for (let position = from; position < boundVerifiers.length; position++) {
        const result = boundVerifiers[position]?.verify(request, now);
        if (result === undefined) continue;
        if (isThenable(result)) return verifyLater(result, position, request, now, bestRefusal);
        if (result.ok) return withPosition(result, position);
        bestRefusal = betterOf(bestRefusal, result);
      }
      return bestRefusal ?? refuse("ERR_SIGNATURE_MISSING", "there is no signature");
    }
    return {
      usesResolver: boundVerifiers.some(({ usesResolver: resolves }) => resolves),
      prepare: async () => (await Promise.all(boundVerifiers.map((verifier) => verifier.prepare()))).flat(),
      verify: (request, now) => tryFrom(0, request, now, null),
    };
  });
}

function withPosition(result: AuthenticVerdict, position: number): AuthenticVerdict {
  return { ...result, keyId: `${position}:${result.keyId ?? ""}` };
}

const CODES_BY_CLOSENESS = ["ERR_SIGNATURE_MISSING", "ERR_SIGNATURE_MALFORMED", "ERR_SIGNATURE_INVALID"];

/** The refusal that says more: that of a verifier whose header the request had. */
function betterOf(a: InauthenticVerdict | null, b: InauthenticVerdict): InauthenticVerdict {
  return a !== null && CODES_BY_CLOSENESS.indexOf(a.code) >= CODES_BY_CLOSENESS.indexOf(b.code) ? a : b;
}

/**
 * Lets everything pass: anybody can send events. A warning at each start says so.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` without a reason.
 */
export function unsafeUnsigned(options: { readonly because: string }): Verifier {
  checkNames("unsafeUnsigned", options, { because: true });
  const { because } = options;
  if (typeof because !== "string" || because.trim() === "") {
    throw invalidOptionError("unsafeUnsigned has no reason.", "Give { because }, in words.");
  }
  return verifierOf((option) => ({
    usesResolver: false,
    isOpen: true,
    prepare: async () => [
      {
        what: `${option} is unsafeUnsigned: anybody can send its events.`,
        fix: `It says: ${because}. Ask the sender for a secret or a token.`,
      },
    ],
    verify: () => ({ ...UNSIGNED_CLAIM, keyId: null, tenant: null }),
  }));
}

/** A verifier from a function of your own. At most as many calls may wait at one time as deliveries may wait for a resolver. */
export function customVerifier(verifyFunction: VerifyFunction): VerifierFactory {
  return (option, { clock, acceptTimeoutMs, maxResolving }) => {
    let waitingCalls = 0;
    async function call(request: SourceRequest, now: number): Promise<AuthenticVerdict | InauthenticVerdict> {
      if (waitingCalls >= maxResolving) {
        throw new PayhooksError(
          "ERR_OVERLOADED",
          `${waitingCalls} deliveries wait for ${option}, which is the limit.`,
          {
            fix: "It is slow, or flooded by strangers. Let it refuse early what is not well formed, or raise limits.maxResolving.",
          },
        );
      }
      waitingCalls++;
      try {
        const verdict = await callWithDeadline(clock, acceptTimeoutMs, async (signal) =>
          verifyFunction(request, { signal, now: new Date(now) }),
        );
        return toVerdict(verdict, option);
      } finally {
        waitingCalls--;
      }
    }
    return { usesResolver: false, prepare: async () => [], verify: call };
  };
}

const REFUSAL_CODES: ReadonlySet<unknown> = new Set(CODES_BY_CLOSENESS);

/** Checks the function's verdict. Nothing but `ok: true` lets a delivery pass. */
function toVerdict(result: VerifyResult, option: string): AuthenticVerdict | InauthenticVerdict {
  const verdict = result as Partial<Record<string, unknown>> | null | undefined;
  if (verdict?.ok === false && REFUSAL_CODES.has(verdict.code)) return result as InauthenticVerdict;
  if (verdict?.ok !== true)
    throw wrongVerdictError(option, "neither { ok: true } nor { ok: false, code, why }");
  const {
    keyId = null,
    signedAt = null,
    tenant,
    content = null,
    signedHeaders = {},
  } = result as Extract<VerifyResult, { ok: true }>;
  if (content !== null && !(content instanceof Uint8Array))
    throw wrongVerdictError(option, "a content that is not bytes");
  const time = signedAt === null ? null : signedAt.getTime();
  if (Number.isNaN(time)) throw wrongVerdictError(option, "a signedAt that is not a valid date");
  if (tenant !== undefined && (typeof tenant !== "string" || tenant === ""))
    throw wrongVerdictError(option, "an empty tenant");
  const lowercaseHeaders = Object.fromEntries(
    Object.entries(signedHeaders).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
  return {
    ok: true,
    keyId: keyId === null ? null : String(keyId),
    tenant: tenant ?? null,
    signedAt: time,
    outsideWindow: null,
    content,
    signedHeaders: lowercaseHeaders,
    signature: null,
  };
}

function wrongVerdictError(option: string, problem: string): PayhooksError {
  return invalidOptionError(`${option} returned ${problem}.`, "Return what the type VerifyResult says.");
}
