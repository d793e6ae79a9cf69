import { UNKNOWN_TENANT_REASON, unsetEntryWarnings } from "../flows/flow.ts";
import { verifyWithKeys } from "../flows/keyring.ts";
import { type Keys, keyringOf } from "../flows/keys.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { countUnset, type OneOrMore } from "../signature/keys.ts";
import {
  type AuthenticVerdict,
  type InauthenticVerdict,
  refuse,
  type SourceRequest,
  type Verifier,
  verifierOf,
} from "./verifier.ts";

/** The claim of a request about itself. It is true if one of the keys fits. */
export type RequestClaim = Omit<AuthenticVerdict, "keyId" | "tenant">;

export interface VerifierKeys<Given, Key> {
  readonly keys: Keys<Given>;
  /** The option that has them. */
  readonly name: string;
  readonly load: (keys: OneOrMore<Given> | undefined, option: string) => readonly Key[];
  /** Why a request is refused if no key fits. */
  readonly refusal: string;
}

interface VerifyingKeys<Key> {
  readonly tenant: string;
  readonly keys: readonly Key[];
}

/** A verifier with keys. `read` returns what a request claims, and `find` the key that fits. */
export function keyedVerifier<Given, Key extends { readonly keyId: string }, Read extends RequestClaim>(
  { keys, name, load, refusal }: VerifierKeys<Given, Key>,
  read: (request: SourceRequest, now: number) => Read | InauthenticVerdict,
  find: (claim: Read, keys: readonly Key[]) => Key | null,
): Verifier {
  return verifierOf((source, limits) => {
    const option = `${source}.${name}`;
    const keyring = keyringOf(keys, option, load, limits);
    function verifyWith(
      verifyingKeys: VerifyingKeys<Key> | null,
      claim: Read,
    ): AuthenticVerdict | InauthenticVerdict {
      if (verifyingKeys === null) return refuse("ERR_SIGNATURE_INVALID", UNKNOWN_TENANT_REASON);
      const key = find(claim, verifyingKeys.keys);
      if (key === null) return refuse("ERR_SIGNATURE_INVALID", refusal);
      const { signedAt, outsideWindow, signedHeaders, content, signature } = claim;
      const tenant = verifyingKeys.tenant === ONLY_TENANT ? null : verifyingKeys.tenant;
      return {
        ok: true,
        keyId: key.keyId,
        tenant,
        signedAt,
        outsideWindow,
        signedHeaders,
        content,
        signature,
      };
    }
    return {
      usesResolver: keyring.usesResolver,
      async prepare() {
        await keyring.prepare();
        return unsetEntryWarnings(option, countUnset(keys));
      },
      verify(request, now) {
        const claim = read(request, now);
        if (!claim.ok) return claim;
        const hint = request.tenant === undefined ? {} : { tenant: request.tenant };
        return verifyWithKeys(keyring, hint, (resolvedKeys) => verifyWith(resolvedKeys, claim));
      },
    };
  });
}
