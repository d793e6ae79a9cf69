import type { OneOrMore } from "../signature/keys.ts";
import type { Awaitable } from "../time/awaitable.ts";
import {
  type KeyResolver,
  type Keyring,
  lazyKeyring,
  type ResolverLimits,
  resolverKeyring,
} from "./keyring.ts";
import { isKeySource, type KeySource, refreshingKeyring } from "./refreshing-keyring.ts";

/**
 * One key, up to four during a rotation, `{ read }` for keys that are read again, or a resolver for many merchants. Entries that
 * are not set are ignored.
 */
export type Keys<Key> = OneOrMore<Key> | KeySource<Key> | KeyResolver<Key> | undefined;

/** A keyring of the keys that a user gave. `load` imports keys; `option` names their source in errors. */
export function keyringOf<Key, Imported extends { readonly keyId: string }>(
  input: Keys<Key>,
  option: string,
  load: (keys: OneOrMore<Key> | undefined, option: string) => Awaitable<readonly Imported[]>,
  limits: ResolverLimits,
): Keyring<Imported> {
  if (isKeySource<Key>(input)) {
    return refreshingKeyring(
      input,
      async (keys) => load(keys, `what ${option}.read returned`),
      option,
      limits,
    );
  }
  if (typeof input === "function") {
    const resolver = input as KeyResolver<Key>;
    return resolverKeyring(resolver, async (keys) => load(keys, `what ${option} returned`), option, limits);
  }
  return lazyKeyring(async () => load(input as OneOrMore<Key> | undefined, option));
}
