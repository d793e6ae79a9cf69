import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.ts";
import { PayhooksError } from "../errors.ts";
import { ONLY_TENANT } from "./flow.ts";

/** What a resolver may choose keys by. It comes from unverified bytes and may only select, never authorise. */
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

/** Finds the keys of one of many merchants; null when there is no such merchant. */
export type KeyResolver<Key> = (hint: KeyHint) => TenantKeys<Key> | null | Promise<TenantKeys<Key> | null>;

/** Keys that are ready for use, and the tenant that they belong to. */
export interface Resolved<Imported> {
  readonly tenant: string;
  readonly keys: readonly Imported[];
}

/** The keys of a flow: fixed ones, or those that a resolver finds. */
export interface Keyring<Imported> {
  /** A resolver looks at the hints, so that they must be there. */
  readonly resolves: boolean;
  /** Imports fixed keys; throws their set-up error. */
  prepare(): Promise<readonly Imported[]>;
  /** Null when the resolver knows no such tenant. A resolver that throws makes this reject. */
  find(hint: KeyHint): Resolved<Imported> | null | Promise<Resolved<Imported> | null>;
}

const MAX_CACHED = 1_000;
const MAX_RESOLVING = 1_000;
const MAX_HINT_LENGTH = 512;
const FOUND_TTL_MS = 60_000;
/** Unknown tenants are remembered for less, and apart, so that a flood of them evicts nothing known. */
const UNKNOWN_TTL_MS = 10_000;

/** A keyring of keys that are ready. */
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
  clock: Clock,
): Keyring<Imported> {
  const perf = { now: () => clock.now() };
  const found = new LRUCache<string, Resolved<Imported>>({
    max: MAX_CACHED,
    ttl: FOUND_TTL_MS,
    ttlResolution: 0,
    perf,
  });
  const unknown = new LRUCache<string, true>({
    max: MAX_CACHED,
    ttl: UNKNOWN_TTL_MS,
    ttlResolution: 0,
    perf,
  });
  const resolving = new Map<string, Promise<Resolved<Imported> | null>>();

  async function ask(hint: KeyHint, key: string): Promise<Resolved<Imported> | null> {
    const answer = await resolver(hint);
    if (answer === null || answer === undefined) {
      unknown.set(key, true);
      return null;
    }
    if (typeof answer.tenant !== "string" || answer.tenant === "") {
      throw new PayhooksError("ERR_OPTION_INVALID", `The resolver in ${option} returned no tenant.`, {
        fix: "Return { tenant, keys } with a tenant that is not empty and stays the same while keys rotate.",
      });
    }
    const resolved = { tenant: answer.tenant, keys: await importKeys(answer.keys) };
    found.set(key, resolved);
    return resolved;
  }

  return {
    resolves: true,
    prepare: async () => [],
    find(hint) {
      const key = JSON.stringify([hint.tenant ?? null, hint.merchantId ?? null]);
      // Hints come from unverified bytes: they must not fill the caches with long texts.
      if (key.length > MAX_HINT_LENGTH) return null;
      const known = found.get(key);
      if (known !== undefined) return known;
      if (unknown.has(key)) return null;
      const asked = resolving.get(key);
      if (asked !== undefined) return asked;
      if (resolving.size >= MAX_RESOLVING) {
        throw new PayhooksError(
          "ERR_RESOLVER_FAILED",
          `${resolving.size} look-ups of the resolver in ${option} are under way, the bound.`,
          {
            fix: "It is slow or flooded with unknown merchants: make it answer from a cache or an index.",
          },
        );
      }
      const asking = ask(hint, key).finally(() => resolving.delete(key));
      resolving.set(key, asking);
      return asking;
    },
  };
}
