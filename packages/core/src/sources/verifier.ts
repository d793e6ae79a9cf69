import type { ResolverLimits } from "../flows/keyring.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import type { DeliveryErrorCode } from "../protocol/errors.ts";
import type { Awaitable } from "../time/awaitable.ts";

/** A request as a verifier sees it. */
export interface SourceRequest {
  readonly method: string;
  /** Path and query as they arrived. Never the host: a proxy or a stranger writes that. */
  readonly path: string;
  readonly headers: { get(name: string): string | null };
  readonly body: Uint8Array;
  /** The result of the adapter's `tenant` option. It selects keys and authorises nothing. */
  readonly tenant: string | undefined;
}

type SignatureCode = Extract<DeliveryErrorCode, `ERR_SIGNATURE_${string}`>;

/** The request is not authentic. */
export interface InauthenticVerdict {
  readonly ok: false;
  readonly code: SignatureCode;
  /** Why, for the log. It has no signature and no secret. */
  readonly why: string;
}

/** The verdict of a verifier of one's own. */
export type VerifyResult =
  | {
      readonly ok: true;
      /** A fingerprint of the key, which reveals nothing about it. */
      readonly keyId: string | null;
      readonly signedAt?: Date | null;
      /** The tenant whose event it is, if the key tells it. */
      readonly tenant?: string;
      /** The authentic bytes, if they are not the body: a decrypted body, a resource that was fetched, the signed part. */
      readonly content?: Uint8Array;
      /** The header fields that the signature covers, by their lowercase names. */
      readonly signedHeaders?: Readonly<Record<string, string>>;
    }
  | InauthenticVerdict;

/** The options that a verifier of one's own gets besides the request. */
export interface VerifyOptions {
  /** Aborts after `limits.acceptTimeoutMs`. */
  readonly signal: AbortSignal;
  /** The receiver's time. */
  readonly now: Date;
}

/**
 * A verifier of one's own. Compare secrets in constant time. If it throws or takes longer than
 * `limits.acceptTimeoutMs`, nothing is known about the signature, and the answer is 503.
 */
export type VerifyFunction = (
  request: SourceRequest,
  options: VerifyOptions,
) => VerifyResult | Promise<VerifyResult>;

declare const VERIFIER: unique symbol;

/** How a source's deliveries are verified. Made by `hmac`, `publicKeySignature`, `token`, `anyOf` and `unsafeUnsigned`. */
export interface Verifier {
  readonly [VERIFIER]: true;
}

/** The request is authentic. */
export interface AuthenticVerdict {
  readonly ok: true;
  readonly keyId: string | null;
  /** The tenant of the key; null if the keys are fixed. */
  readonly tenant: string | null;
  readonly signedAt: number | null;
  /** Set if the signed time is outside of the verifier's tolerance. */
  readonly outsideWindow: "ERR_TIMESTAMP_EXPIRED" | "ERR_TIMESTAMP_FUTURE" | null;
  readonly content: Uint8Array | null;
  readonly signedHeaders: Readonly<Record<string, string>>;
  /** The signature header as it was sent; null for a token, which is a secret. */
  readonly signature: string | null;
}

/** A verifier in a receiver, with its keys. */
export interface BoundVerifier {
  /** True if a resolver chooses the keys. */
  readonly usesResolver: boolean;
  /** True if it lets everything pass. */
  readonly isOpen?: true;
  prepare(): Promise<readonly SetupWarning[]>;
  verify(request: SourceRequest, now: number): Awaitable<AuthenticVerdict | InauthenticVerdict>;
}

/** Makes the verifier of one receiver. `option` names it in messages. */
export type VerifierFactory = (option: string, limits: ResolverLimits) => BoundVerifier;

const verifierFactories = new WeakMap<object, VerifierFactory>();

/** A verifier as users hold it. */
export function verifierOf(factory: VerifierFactory): Verifier {
  const verifier = Object.freeze({}) as Verifier;
  verifierFactories.set(verifier, factory);
  return verifier;
}

/** How to bind a user's verifier; null if the value is none. */
export function verifierFactoryOf(verifier: unknown): VerifierFactory | null {
  return typeof verifier === "object" && verifier !== null ? (verifierFactories.get(verifier) ?? null) : null;
}

/** The answer for a request that is not authentic. */
export function refuse(code: SignatureCode, why: string): InauthenticVerdict {
  return { ok: false, code, why };
}
