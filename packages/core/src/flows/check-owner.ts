import { PayhooksError } from "../protocol/errors.ts";
import type { CallbackRules } from "./callback.ts";
import { type Keyring, resolverError } from "./keyring.ts";
import type { LookupTransaction } from "./lookup.ts";

/**
 * Checks whose transaction a look-up has returned. The result is not signed, so only its `merchant_id` shows that. The
 * resolver is asked with the `merchant_id` alone, because it could believe a given tenant. If it knows merchants only
 * together with their tenant, it is asked with both.
 *
 * @throws PayhooksError `ERR_TRANSACTION_FOREIGN`, `ERR_RESOLVER_FAILED`, or `ERR_OVERLOADED` if too many wait for the resolver.
 */
export async function checkOwner(
  { merchant_id: merchantId = "" }: LookupTransaction,
  tenant: string,
  keyring: Keyring<unknown>,
  { pinnedMerchantIds }: CallbackRules,
): Promise<void> {
  if (pinnedMerchantIds.size > 0 && !pinnedMerchantIds.has(merchantId)) {
    throw foreignTransactionError("merchant_id is none of payments.expect.merchantId");
  }
  if (!keyring.usesResolver) return;
  const find = async (hint: Parameters<typeof keyring.find>[0]) => {
    try {
      return await keyring.find(hint);
    } catch (cause) {
      throw resolverError(cause);
    }
  };
  const resolved = (await find({ merchantId })) ?? (await find({ tenant, merchantId }));
  if (resolved === null)
    throw foreignTransactionError(
      "the resolver in payments.publicKey knows no merchant with its merchant_id",
    );
  if (resolved.tenant !== tenant)
    throw foreignTransactionError("its merchant_id belongs to another tenant than the given one");
}

function foreignTransactionError(why: string): PayhooksError {
  return new PayhooksError("ERR_TRANSACTION_FOREIGN", `The transaction is another merchant's: ${why}.`, {
    fix: "Look transactions up with the merchant's own credentials, and pass { tenant } as the resolver names that merchant.",
  });
}
