import { UNKNOWN_TENANT, unsetEntries } from "../flows/flow.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { countUnset, type OneOrMore } from "../signature/keys.ts";
import { isPending } from "../time/awaitable.ts";
import { type Keys, keyringOf } from "./keys.ts";
import type { SignedText } from "./signed-text.ts";
import {
  type Authentic,
  type NotAuthentic,
  refused,
  type SourceRequest,
  type Verifier,
  verifierOf,
} from "./verifier.ts";

interface Found<Key> {
  readonly tenant: string;
  readonly keys: readonly Key[];
}

/** A verifier of signatures. `find` returns the key that fits. */
export function signedVerifier<Given, Key extends { readonly keyId: string }>(
  read: (request: SourceRequest, now: number) => SignedText | NotAuthentic,
  keys: Keys<Given>,
  name: string,
  load: (keys: OneOrMore<Given> | undefined, option: string) => readonly Key[],
  find: (text: SignedText, keys: readonly Key[]) => Key | null,
): Verifier {
  return verifierOf((source, limits) => {
    const option = `${source}.${name}`;
    const keyring = keyringOf(keys, option, load, limits);
    function verifyWith(found: Found<Key> | null, text: SignedText): Authentic | NotAuthentic {
      if (found === null) return refused("ERR_SIGNATURE_INVALID", UNKNOWN_TENANT);
      const key = find(text, found.keys);
      if (key === null) return refused("ERR_SIGNATURE_INVALID", `the signature fits none of the ${name}s`);
      const { signedAt, outside, covered, header } = text;
      const tenant = found.tenant === ONLY_TENANT ? null : found.tenant;
      return {
        ok: true,
        keyId: key.keyId,
        tenant,
        signedAt,
        outside,
        covered,
        content: null,
        signature: header,
      };
    }
    return {
      resolves: keyring.resolves,
      async prepare() {
        await keyring.prepare();
        return unsetEntries(option, countUnset(keys));
      },
      verify(request, now) {
        const text = read(request, now);
        if (!text.ok) return text;
        const found = keyring.find(request.tenant === undefined ? {} : { tenant: request.tenant });
        return isPending(found)
          ? found.then((resolved) => verifyWith(resolved, text))
          : verifyWith(found, text);
      },
    };
  });
}
