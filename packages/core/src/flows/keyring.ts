import { LRUCache } from "lru-cache";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import type { Happening } from "../notices/notice.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { emptyContext } from "../time/async-context.ts";
import { type Awaitable, isPending } from "../time/awaitable.ts";
import type { Clock } from "../time/clock.ts";
import { TIME_IS_UP, withinTime } from "../time/deadline.ts";

/**
 * The facts by which a resolver may choose keys. They come from unverified bytes, so they may only select keys, never authorise anything.
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
 * Finds the keys of one of many merchants. Returns null if there is no such merchant. Deliveries with the same hint share a
 * call, which is made in the empty asynchronous context. A call that has not settled after `acceptTimeoutMs` is abandoned, and the next delivery makes another one.
 */
export type KeyResolver<Key> = (
  hint: KeyHint,
  options: ResolveOptions,
) => TenantKeys<Key> | null | Promise<TenantKeys<Key> | null>;

/** Keys that are ready for use, and the tenant that they belong to. */
export interface Resolved<Imported> {
  readonly tenant: string;
  readonly keys: readonly Imported[];
}

/** The keys of a flow: fixed keys, keys that are read again, or keys that a resolver finds. */
export interface Keyring<Imported> {
  /** True if a resolver chooses the keys. Then a delivery must have the hint for the resolver. */
  readonly resolves: boolean;
  /** Imports fixed keys; throws their set-up error. */
  prepare(): Promise<readonly Imported[]>;
  /**
   * Null if the resolver knows no such tenant. If the resolver throws, this rejects. If it takes too long, this rejects with
   * `TIME_IS_UP`. Throws `ERR_OVERLOADED` if too many deliveries wait for the resolver.
   */
  find(hint: KeyHint): Awaitable<Resolved<Imported> | null>;
  /**
   * Reads the keys again after a signature that fits none of them. Null if it is too soon: anybody can send such a delivery, so this is
   * limited.
   */
  findAnother?(): Promise<Resolved<Imported>> | null;
}

/** The limits of a resolver's calls: see the receiver's options. */
export interface ResolverLimits {
  readonly clock: Clock;
  readonly acceptTimeoutMs: number;
  readonly maxResolving: number;
  /** Posts a notice about the keys. */
  readonly notify?: ((happening: Happening) => void) | undefined;
}

/** Verifies with the keys for this hint, and once more if a signature fits none and the keys can be read again. */
export function verifyBy<Imported, Outcome extends { readonly ok: boolean | null }>(
  keyring: Keyring<Imported>,
  hint: KeyHint,
  verify: (found: Resolved<Imported> | null) => Outcome,
): Awaitable<Outcome> {
  function verifyOrReadAgain(found: Resolved<Imported> | null): Awaitable<Outcome> {
    const outcome = verify(found);
    if (outcome.ok !== false) return outcome;
    const another = keyring.findAnother?.() ?? null;
    return another === null ? outcome : another.then((keys) => (keys === found ? outcome : verify(keys)));
  }
  const found = keyring.find(hint);
  return isPending(found) ? found.then(verifyOrReadAgain) : verifyOrReadAgain(found);
}

const MAX_CACHED = 1_000;
const MAX_HINT_LENGTH = 512;
const FOUND_TTL_MS = 60_000;
const UNKNOWN_TTL_MS = 10_000;

/**
 * The error of a resolver that fails. It says nothing about the signature, so the sender must try again. The resolver's message is not
 * logged: it may repeat the merchant id, which a stranger may have written.
 */
export function resolverFailed(cause: unknown): PayhooksError {
  if (isPayhooksError(cause) && cause.code === "ERR_OVERLOADED") return cause;
  const isLate = cause === TIME_IS_UP;
  const why = isLate ? "no answer within limits.acceptTimeoutMs" : describeError(cause);
  return new PayhooksError("ERR_RESOLVER_FAILED", `The key resolver failed: ${why}`, isLate ? {} : { cause });
}

/** A keyring of keys that are ready for use. */
export function fixedKeys<Imported>(keys: readonly Imported[]): Keyring<Imported> {
  const resolved = { tenant: ONLY_TENANT, keys };
  return { resolves: false, prepare: async () => keys, find: () => resolved };
}

/** A keyring of fixed keys that `load` imports once, when the receiver starts or the first delivery arrives. */
export function lazyKeys<Imported>(load: () => Promise<readonly Imported[]>): Keyring<Imported> {
  let resolved: Resolved<Imported> | null = null;
  let loading: Promise<readonly Imported[]> | null = null;
  return {
    resolves: false,
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
export function resolvedKeys<Key, Imported>(
  resolver: KeyResolver<Key>,
  importKeys: (keys: Key | readonly Key[]) => Promise<readonly Imported[]>,
  option: string,
  { clock, acceptTimeoutMs, maxResolving }: ResolverLimits,
): Keyring<Imported> {
  const answers = new Answers<Imported>(clock);
  const calls = new Map<string, Promise<Resolved<Imported> | null>>();
  /** How many deliveries wait. Those of known merchants are counted separately, so that strangers cannot take their places. */
  const [regulars, strangers] = [{ waiting: 0 }, { waiting: 0 }];

  async function ask(hint: KeyHint, key: string, signal: AbortSignal): Promise<Resolved<Imported> | null> {
    const askedAt = clock.now();
    const answer = await resolver(hint, { signal });
    if (answer === null || answer === undefined) {
      answers.keep(key, null, askedAt);
      return null;
    }
    if (typeof answer.tenant !== "string" || answer.tenant === "") {
      throw new PayhooksError("ERR_OPTION_INVALID", `The resolver in ${option} returned no tenant.`, {
        fix: "Return { tenant, keys } with a tenant that is not empty and stays the same while keys rotate.",
      });
    }
    const resolved = { tenant: answer.tenant, keys: await importKeys(answer.keys) };
    answers.keep(key, resolved, askedAt);
    return resolved;
  }

  /** A call may never settle, for example on a dead connection. It must not block the next one. */
  async function call(hint: KeyHint, key: string): Promise<Resolved<Imported> | null> {
    try {
      return await withinTime(clock, acceptTimeoutMs, (signal) => ask(hint, key, signal));
    } finally {
      calls.delete(key);
    }
  }

  return {
    resolves: true,
    prepare: async () => [],
    find(hint) {
      const key = JSON.stringify([hint.tenant ?? null, hint.merchantId ?? null]);
      // Hints come from unverified bytes, so they must not fill the caches with long texts.
      if (key.length > MAX_HINT_LENGTH) return null;
      const known = answers.of(key);
      if (known !== undefined) return known;
      const line = answers.wasFound(key) ? regulars : strangers;
      if (line.waiting >= maxResolving) {
        throw new PayhooksError(
          "ERR_OVERLOADED",
          `${line.waiting} deliveries wait for the resolver in ${option}, which is the limit.`,
          {
            fix: "It is slow, or flooded with unknown merchants: make it answer from a cache or an index, or raise limits.maxResolving.",
          },
        );
      }
      let asking = calls.get(key);
      if (asking === undefined) {
        // Several requests share the call and its answer.
        asking = emptyContext.run(() => call(hint, key));
        calls.set(key, asking);
      }
      line.waiting++;
      return asking.finally(() => line.waiting--);
    },
  };
}

/** The answers of a resolver, kept for a minute, counted from the question. */
class Answers<Imported> {
  readonly #clock: Clock;
  readonly #found: LRUCache<string, { readonly resolved: Resolved<Imported>; readonly askedAt: number }>;
  /** Unknown merchants are kept separately, and for a shorter time, so that a flood of them cannot evict known merchants. */
  readonly #unknown: LRUCache<string, { readonly askedAt: number }>;
  readonly #foundBefore = new LRUCache<string, true>({ max: MAX_CACHED });

  constructor(clock: Clock) {
    this.#clock = clock;
    const options = { max: MAX_CACHED, ttl: FOUND_TTL_MS, ttlResolution: 0, perf: clock };
    this.#found = new LRUCache(options);
    this.#unknown = new LRUCache(options);
  }

  /** Null: there is no such merchant. Undefined: the resolver has to be asked. */
  of(key: string): Resolved<Imported> | null | undefined {
    return this.#found.get(key)?.resolved ?? (this.#unknown.has(key) ? null : undefined);
  }

  /** True if the last answer about this merchant had keys, however old it is. */
  wasFound(key: string): boolean {
    return this.#foundBefore.has(key);
  }

  /** Keeps an answer, even a late one, unless a later question has been answered before it. */
  keep(key: string, resolved: Resolved<Imported> | null, askedAt: number): void {
    const newer = this.#found.peek(key) ?? this.#unknown.peek(key);
    if (newer !== undefined && newer.askedAt > askedAt) return;
    this.#found.delete(key);
    this.#unknown.delete(key);
    this.#foundBefore.delete(key);
    if (resolved !== null) this.#foundBefore.set(key, true);
    const ttl = (resolved === null ? UNKNOWN_TTL_MS : FOUND_TTL_MS) - (this.#clock.now() - askedAt);
    if (ttl <= 0) return;
    if (resolved === null) this.#unknown.set(key, { askedAt }, { ttl });
    else this.#found.set(key, { resolved, askedAt }, { ttl });
  }
}
