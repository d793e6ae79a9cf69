import { UNKNOWN_TENANT, unsetEntries } from "../flows/flow.ts";
import { verifyWithKeys } from "../flows/keyring.ts";
import { type Keys, keyringOf } from "../flows/keys.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { countUnset, type OneOrMore } from "../signature/keys.ts";
import {
  type Authentic,
  type NotAuthentic,
  refused,
  type SourceRequest,
  type Verifier,
  verifierOf,
} from "./verifier.ts";

/** The claim of a request about itself. It is true if one of the keys fits. */
export type Claim = Omit<Authentic, "keyId" | "tenant">;

export interface VerifierKeys<Given, Key> {
  readonly keys: Keys<Given>;
  /** The option that has them. */
  readonly name: string;
  readonly load: (keys: OneOrMore<Given> | undefined, option: string) => readonly Key[];
  /** Why a request is refused if no key fits. */
  readonly refusal: string;
}

interface TenantKeys<Key> {
  readonly tenant: string;
  readonly keys: readonly Key[];
}

/** A verifier with keys. `read` returns what a request claims, and `find` the key that fits. */
export function keyedVerifier<Given, Key extends { readonly keyId: string }, Read extends Claim>(
  { keys, name, load, refusal }: VerifierKeys<Given, Key>,
  read: (request: SourceRequest, now: number) => Read | NotAuthentic,
  find: (claim: Read, keys: readonly Key[]) => Key | null,
): Verifier {
  return verifierOf((source, limits) => {
    const option = `${source}.${name}`;
    const keyring = keyringOf(keys, option, load, limits);
    function verifyWith(found: TenantKeys<Key> | null, claim: Read): Authentic | NotAuthentic {
      if (found === null) return refused("ERR_SIGNATURE_INVALID", UNKNOWN_TENANT);
      const key = find(claim, found.keys);
      if (key === null) return refused("ERR_SIGNATURE_INVALID", refusal);
      const { signedAt, outsideWindow, covered, content, signature } = claim;
      const tenant = found.tenant === ONLY_TENANT ? null : found.tenant;
      return {
        ok: true,
        keyId: key.keyId,
        tenant,
        signedAt,
        outsideWindow,
        covered,
        content,
        signature,
      };
    }
    return {
      usesResolver: keyring.usesResolver,
      async prepare() {
        await keyring.prepare();
        return unsetEntries(option, countUnset(keys));
      },
      verify(request, now) {
        const claim = read(request, now);
        if (!claim.ok) return claim;
        const hint = request.tenant === undefined ? {} : { tenant: request.tenant };
        return verifyWithKeys(keyring, hint, (found) => verifyWith(found, claim));
      },
    };
  });
}
