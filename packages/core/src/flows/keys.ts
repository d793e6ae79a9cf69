import type { OneOrMore } from "../signature/keys.ts";
import type { Awaitable } from "../time/awaitable.ts";
import { type KeyResolver, type Keyring, lazyKeys, type ResolverLimits, resolvedKeys } from "./keyring.ts";
import { isKeySource, type KeySource, keysReadAgain } from "./keys-read-again.ts";

/**
 * One key, up to four during a rotation, `{ read }` for keys that are read again, or a resolver for many merchants. Entries that
 * are not set are ignored.
 */
export type Keys<Key> = OneOrMore<Key> | KeySource<Key> | KeyResolver<Key> | undefined;

/** A keyring of the keys that a user gave. `load` imports keys; `what` names their source in errors. */
export function keyringOf<Key, Imported extends { readonly keyId: string }>(
  given: Keys<Key>,
  option: string,
  load: (keys: OneOrMore<Key> | undefined, what: string) => Awaitable<readonly Imported[]>,
  limits: ResolverLimits,
): Keyring<Imported> {
  if (isKeySource<Key>(given)) {
    return keysReadAgain(given, async (keys) => load(keys, `what ${option}.read returned`), option, limits);
  }
  if (typeof given === "function") {
    const resolver = given as KeyResolver<Key>;
    return resolvedKeys(resolver, async (keys) => load(keys, `what ${option} returned`), option, limits);
  }
  return lazyKeys(async () => load(given as OneOrMore<Key> | undefined, option));
}
