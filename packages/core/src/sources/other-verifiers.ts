import { createHash, timingSafeEqual } from "node:crypto";
import type { Keys } from "../flows/keys.ts";
import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { invalidOption, PayhooksError } from "../protocol/errors.ts";
import { importSecrets, type SecretInput, type VerifyingSecret } from "../signature/keys.ts";
import { isPending } from "../time/awaitable.ts";
import { callWithTimeout } from "../time/deadline.ts";
import { type Claim, keyedVerifier } from "./keyed-verifier.ts";
import { checkedHeader } from "./signed-text.ts";
import {
  type Authentic,
  type Bind,
  bindOf,
  type NotAuthentic,
  refused,
  type SourceRequest,
  type Verifier,
  type VerifyFunction,
  type VerifyResult,
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
  const name = checkedHeader("token", "header", header);
  function read({ headers }: SourceRequest): Sent | NotAuthentic {
    const value = headers.get(name) ?? "";
    if (value === "") return refused("ERR_SIGNATURE_MISSING", `there is no header ${name}`);
    const prefix = scheme === undefined ? "" : `${scheme} `;
    if (value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) {
      return refused("ERR_SIGNATURE_MALFORMED", `${name} does not begin with ${scheme}`);
    }
    return { ...NOTHING_SIGNED, sent: value.slice(prefix.length) };
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
      let found: VerifyingSecret | null = null;
      for (const secret of secrets) {
        if (timingSafeEqual(digestOf(secret.key.export()), claimed)) found = secret;
      }
      return found;
    },
  );
}

/** A token as it was sent. */
interface Sent extends Claim {
  readonly sent: string;
}

const NOTHING_SIGNED = {
  ok: true,
  signedAt: null,
  outsideWindow: null,
  content: null,
  covered: {},
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
  const binds = verifiers.map(bindOf);
  if (binds.length < 2 || binds.length > 4 || binds.some((bind) => bind === null)) {
    throw invalidOption(
      "anyOf was not given two to four verifiers.",
      "Give what hmac, publicKeySignature or token returned.",
    );
  }
  return verifierOf((option, limits) => {
    const bound = (binds as readonly Bind[]).map((bind) => bind(option, limits));
    if (bound.some(({ isOpen }) => isOpen)) {
      throw invalidOption(
        `${option} lists unsafeUnsigned beside other verifiers.`,
        "Then anything passes. Remove it.",
      );
    }
    async function verifyLater(
      first: Promise<Authentic | NotAuthentic>,
      at: number,
      request: SourceRequest,
      now: number,
      best: NotAuthentic | null,
    ): Promise<Authentic | NotAuthentic> {
      const result = await first;
      if (result.ok) return marked(result, at);
      return tryFrom(at + 1, request, now, betterOf(best, result));
    }
    function tryFrom(
      from: number,
      request: SourceRequest,
      now: number,
      given: NotAuthentic | null,
    ): Authentic | NotAuthentic | Promise<Authentic | NotAuthentic> {
      let best = given;
      for (let at = from; at < bound.length; at++) {
        const result = bound[at]?.verify(request, now);
        if (result === undefined) continue;
        if (isPending(result)) return verifyLater(result, at, request, now, best);
        if (result.ok) return marked(result, at);
        best = betterOf(best, result);
      }
      return best ?? refused("ERR_SIGNATURE_MISSING", "there is no signature");
    }
    return {
      usesResolver: bound.some(({ usesResolver: resolves }) => resolves),
      prepare: async () => (await Promise.all(bound.map((one) => one.prepare()))).flat(),
      verify: (request, now) => tryFrom(0, request, now, null),
    };
  });
}

function marked(result: Authentic, at: number): Authentic {
  return { ...result, keyId: `${at}:${result.keyId ?? ""}` };
}

const CLOSENESS = ["ERR_SIGNATURE_MISSING", "ERR_SIGNATURE_MALFORMED", "ERR_SIGNATURE_INVALID"];

/** The refusal that says more: that of a verifier whose header the request had. */
function betterOf(a: NotAuthentic | null, b: NotAuthentic): NotAuthentic {
  return a !== null && CLOSENESS.indexOf(a.code) >= CLOSENESS.indexOf(b.code) ? a : b;
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
    throw invalidOption("unsafeUnsigned has no reason.", "Give { because }, in words.");
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
    verify: () => ({ ...NOTHING_SIGNED, keyId: null, tenant: null }),
  }));
}

/** A verifier from a function of your own. At most as many calls may wait at one time as deliveries may wait for a resolver. */
export function ownVerifier(own: VerifyFunction): Bind {
  return (option, { clock, acceptTimeoutMs, maxResolving }) => {
    let waiting = 0;
    async function call(request: SourceRequest, now: number): Promise<Authentic | NotAuthentic> {
      if (waiting >= maxResolving) {
        throw new PayhooksError(
          "ERR_OVERLOADED",
          `${waiting} deliveries wait for ${option}, which is the limit.`,
          {
            fix: "It is slow, or flooded by strangers. Let it refuse early what is not well formed, or raise limits.maxResolving.",
          },
        );
      }
      waiting++;
      try {
        const verdict = await callWithTimeout(clock, acceptTimeoutMs, async (signal) =>
          own(request, { signal, now: new Date(now) }),
        );
        return checkedVerdict(verdict, option);
      } finally {
        waiting--;
      }
    }
    return { usesResolver: false, prepare: async () => [], verify: call };
  };
}

const CODES: ReadonlySet<unknown> = new Set(CLOSENESS);

/** Checks the function's verdict. Nothing but `ok: true` lets a delivery pass. */
function checkedVerdict(given: VerifyResult, option: string): Authentic | NotAuthentic {
  const verdict = given as Partial<Record<string, unknown>> | null | undefined;
  if (verdict?.ok === false && CODES.has(verdict.code)) return given as NotAuthentic;
  if (verdict?.ok !== true) throw wrong(option, "neither { ok: true } nor { ok: false, code, why }");
  const {
    keyId = null,
    signedAt = null,
    tenant,
    content = null,
    covered = {},
  } = given as Extract<VerifyResult, { ok: true }>;
  if (content !== null && !(content instanceof Uint8Array))
    throw wrong(option, "a content that is not bytes");
  const time = signedAt === null ? null : signedAt.getTime();
  if (Number.isNaN(time)) throw wrong(option, "a signedAt that is no date");
  if (tenant !== undefined && (typeof tenant !== "string" || tenant === ""))
    throw wrong(option, "an empty tenant");
  const lower = Object.fromEntries(
    Object.entries(covered).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
  return {
    ok: true,
    keyId: keyId === null ? null : String(keyId),
    tenant: tenant ?? null,
    signedAt: time,
    outsideWindow: null,
    content,
    covered: lower,
    signature: null,
  };
}

function wrong(option: string, what: string): PayhooksError {
  return invalidOption(`${option} returned ${what}.`, "Return what the type VerifyResult says.");
}
