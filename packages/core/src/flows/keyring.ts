import { LRUCache } from "lru-cache";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { emptyContext } from "../time/async-context.ts";
import { type Awaitable, isThenable } from "../time/awaitable.ts";
import { type Clock, Stopwatch } from "../time/clock.ts";
import { callWithDeadline, TIME_IS_UP } from "../time/deadline.ts";

/**
 * The facts by which a resolver may choose keys. They come from unverified bytes, so they may only select keys, never
 * authorise anything.
 */
export interface KeyHint {
  /** The adapter's `tenant` option for the request. */
  readonly tenant?: string;
  /** The body's `merchantId` (payments only). */
  readonly merchantId?: string;
}

/** A resolver's answer. Records are scoped by `tenant`, which must stay the same while keys rotate. */
export interface TenantKeys<Key> {
  readonly tenant: string;
  readonly keys: Key | readonly Key[];
}

/** The resolver's options besides the hint, in the form of the options of `fetch`. */
export interface ResolveOptions {
  /** Aborts after `acceptTimeoutMs`, when no delivery waits for the answer any more. Pass it on to the calls that you make. */
  readonly signal: AbortSignal;
}

/**
 * Finds the keys of one of many merchants. Returns null if there is no such merchant. Deliveries with the same hint
 * share a call. It is made in the empty asynchronous context. A call that has not settled after `acceptTimeoutMs` is
 * abandoned, and the next delivery makes another one.
 */
export type KeyResolver<Key> = (
  hint: KeyHint,
  options: ResolveOptions,
) => TenantKeys<Key> | null | Promise<TenantKeys<Key> | null>;

/** Keys that are ready for use, and the tenant that they belong to. */
export interface ResolvedKeys<Imported> {
  readonly tenant: string;
  readonly keys: readonly Imported[];
}

/** The keys of a flow: fixed keys, keys that are read again, or keys that a resolver finds. */
export interface Keyring<Imported> {
  /** True if a resolver chooses the keys. Then a delivery must have the hint for the resolver. */
  readonly usesResolver: boolean;
  /** Imports fixed keys; throws their set-up error. */
  prepare(): Promise<readonly Imported[]>;
  /**
   * Null if the resolver knows no such tenant. If the resolver throws, this rejects. If it takes too long, this rejects with
   * `TIME_IS_UP`. Throws `ERR_OVERLOADED` if too many deliveries wait for the resolver.
   */
  find(hint: KeyHint): Awaitable<ResolvedKeys<Imported> | null>;
  /**
   * Reads the keys again after a signature that fits none of them. Null if they were read a moment ago. Without this
   * limit, forged deliveries could cause any number of reads.
   */
  refresh?(): Promise<ResolvedKeys<Imported>> | null;
}

/** The limits of a resolver's calls: see the receiver's options. */
export interface ResolverLimits {
  readonly clock: Clock;
  readonly acceptTimeoutMs: number;
  readonly maxResolving: number;
  /** Posts a notice about the keys. */
  readonly notify?: ((notice: UndatedNotice) => void) | undefined;
}

/** Verifies with the keys for this hint, and once more if a signature fits none and the keys can be read again. */
export function verifyWithKeys<Imported, Outcome extends { readonly ok: boolean | null }>(
  keyring: Keyring<Imported>,
  hint: KeyHint,
  verify: (found: ResolvedKeys<Imported> | null) => Outcome,
): Awaitable<Outcome> {
  function verifyOrRefresh(resolved: ResolvedKeys<Imported> | null): Awaitable<Outcome> {
    const outcome = verify(resolved);
    if (outcome.ok !== false) return outcome;
    const refreshed = keyring.refresh?.() ?? null;
    return refreshed === null
      ? outcome
      : refreshed.then((keys) => (keys === resolved ? outcome : verify(keys)));
  }
  const resolved = keyring.find(hint);
  return isThenable(resolved) ? resolved.then(verifyOrRefresh) : verifyOrRefresh(resolved);
}

const MAX_CACHED_ANSWERS = 1_000;
const MAX_HINT_LENGTH = 512;
const KNOWN_MERCHANT_TTL_MS = 60_000;
const UNKNOWN_MERCHANT_TTL_MS = 10_000;

/**
 * The error of a resolver that fails. It says nothing about the signature, so the sender must try again. The resolver's
 * message is not logged: it may repeat the merchant id, which a stranger may have written.
 */
export function resolverError(cause: unknown): PayhooksError {
  if (isPayhooksError(cause) && cause.code === "ERR_OVERLOADED") return cause;
  const isLate = cause === TIME_IS_UP;
  const reason = isLate ? "no answer within limits.acceptTimeoutMs" : describeError(cause);
  return new PayhooksError(
    "ERR_RESOLVER_FAILED",
    `The key resolver failed: ${reason}`,
    isLate ? {} : { cause },
  );
}

/** A keyring of keys that are ready for use. */
export function fixedKeyring<Imported>(keys: readonly Imported[]): Keyring<Imported> {
  const resolved = { tenant: ONLY_TENANT, keys };
  return { usesResolver: false, prepare: async () => keys, find: () => resolved };
}

/** A keyring of fixed keys that `load` imports once, when the receiver starts or the first delivery arrives. */
export function lazyKeyring<Imported>(load: () => Promise<readonly Imported[]>): Keyring<Imported> {
  let resolved: ResolvedKeys<Imported> | null = null;
  let loading: Promise<readonly Imported[]> | null = null;
  return {
    usesResolver: false,
    async prepare() {
      loading ??= load();
      try {
        const keys = await loading;
        resolved = { tenant: ONLY_TENANT, keys };
        return keys;
      } catch (error) {
        loading = null;
        throw error;
      }
    },
    find: () => resolved,
  };
}

/** A keyring that asks the merchant's resolver, once per hint and minute. */
export function resolverKeyring<Key, Imported>(
  resolver: KeyResolver<Key>,
  importKeys: (keys: Key | readonly Key[]) => Promise<readonly Imported[]>,
  option: string,
  { clock, acceptTimeoutMs, maxResolving }: ResolverLimits,
): Keyring<Imported> {
  const cache = new ResolverCache<Imported>();
  const calls = new Map<string, Promise<ResolvedKeys<Imported> | null>>();
  /** How many deliveries wait. Those of known merchants are counted separately, so that strangers cannot take their places. */
  const [knownMerchants, unknownMerchants] = [{ waiting: 0 }, { waiting: 0 }];

  async function callResolver(
    hint: KeyHint,
    key: string,
    signal: AbortSignal,
  ): Promise<ResolvedKeys<Imported> | null> {
    const sinceCall = new Stopwatch(clock);
    const answer = await resolver(hint, { signal });
    if (answer === null || answer === undefined) {
      cache.store(key, null, sinceCall);
      return null;
    }
    if (typeof answer.tenant !== "string" || answer.tenant === "") {
      throw new PayhooksError("ERR_OPTION_INVALID", `The resolver in ${option} returned no tenant.`, {
        fix: "Return { tenant, keys } with a tenant that is not empty and stays the same while keys rotate.",
      });
    }
    const resolved = { tenant: answer.tenant, keys: await importKeys(answer.keys) };
    cache.store(key, resolved, sinceCall);
    return resolved;
  }

  /** A call may never settle, for example on a dead connection. It must not block the next one. */
  async function call(hint: KeyHint, key: string): Promise<ResolvedKeys<Imported> | null> {
    try {
      return await callWithDeadline(clock, acceptTimeoutMs, (signal) => callResolver(hint, key, signal));
    } finally {
      calls.delete(key);
    }
  }

  return {
    usesResolver: true,
    prepare: async () => [],
    find(hint) {
      const key = JSON.stringify([hint.tenant ?? null, hint.merchantId ?? null]);
      // Hints come from unverified bytes, so they must not fill the caches with long texts.
      if (key.length > MAX_HINT_LENGTH) return null;
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      const group = cache.wasKnown(key) ? knownMerchants : unknownMerchants;
      if (group.waiting >= maxResolving) {
        throw new PayhooksError(
          "ERR_OVERLOADED",
          `${group.waiting} deliveries wait for the resolver in ${option}, which is the limit.`,
          {
            fix: "It is slow, or flooded with unknown merchants: make it answer from a cache or an index, or raise limits.maxResolving.",
          },
        );
      }
      let pendingCall = calls.get(key);
      if (pendingCall === undefined) {
        // Several requests share the call and its answer.
        pendingCall = emptyContext.run(() => call(hint, key));
        calls.set(key, pendingCall);
      }
      group.waiting++;
      return pendingCall.finally(() => group.waiting--);
    },
  };
}

/** An answer of a resolver; null for an unknown merchant. */
interface CachedAnswer<Imported> {
  readonly resolved: ResolvedKeys<Imported> | null;
  /** The time since the call. */
  readonly sinceCall: Stopwatch;
}

/** The answers of a resolver, kept for a minute, counted from the call. */
class ResolverCache<Imported> {
  readonly #knownMerchants = new LRUCache<string, CachedAnswer<Imported>>({ max: MAX_CACHED_ANSWERS });
  /** Unknown merchants are kept separately, and for a shorter time, so that a flood of them cannot evict known merchants. */
  readonly #unknownMerchants = new LRUCache<string, CachedAnswer<Imported>>({ max: MAX_CACHED_ANSWERS });
  readonly #lastKnown = new LRUCache<string, true>({ max: MAX_CACHED_ANSWERS });

  /** Null: there is no such merchant. Undefined: the resolver has to be asked. */
  get(key: string): ResolvedKeys<Imported> | null | undefined {
    const answer = this.#knownMerchants.get(key) ?? this.#unknownMerchants.get(key);
    return answer === undefined || isTooOld(answer) ? undefined : answer.resolved;
  }

  /** True if the last answer about this merchant had keys, however old it is. */
  wasKnown(key: string): boolean {
    return this.#lastKnown.has(key);
  }

  /** Keeps an answer, even a late one, unless a later call has been answered before it. */
  store(key: string, resolved: ResolvedKeys<Imported> | null, sinceCall: Stopwatch): void {
    const previous = this.#knownMerchants.peek(key) ?? this.#unknownMerchants.peek(key);
    if (previous !== undefined && previous.sinceCall.elapsedMs < sinceCall.elapsedMs) return;
    this.#knownMerchants.delete(key);
    this.#unknownMerchants.delete(key);
    this.#lastKnown.delete(key);
    if (resolved !== null) this.#lastKnown.set(key, true);
    const answer = { resolved, sinceCall };
    (resolved === null ? this.#unknownMerchants : this.#knownMerchants).set(key, answer);
  }
}

function isTooOld({ resolved, sinceCall }: CachedAnswer<unknown>): boolean {
  return sinceCall.elapsedMs >= (resolved === null ? UNKNOWN_MERCHANT_TTL_MS : KNOWN_MERCHANT_TTL_MS);
}
