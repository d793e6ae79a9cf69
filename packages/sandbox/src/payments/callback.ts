import type { NewDelivery } from "../deliveries/delivery.ts";
import type { Merchant } from "../keys/merchant.ts";
import type { WireNames } from "../names.ts";
import type { TransactionRecord } from "./transactions.ts";

/**
 * The callback that announces a transaction's present status (specification, Payment callback events). Null if the
 * transaction has no callback address, or if no callback has this status. The fields have the specification's names:
 * the signer writes those of the deployment.
 */
export function callbackFor(
  record: TransactionRecord,
  merchant: Merchant,
  timestamp: string,
  names: WireNames,
): NewDelivery | null {
  const { transaction, order } = record;
  const status = names.status(transaction.status);
  if (order.callbackUrl === null || status === null) return null;
  const providerTxId =
    record.providerTxId ?? (names.isAlwaysSent("providerTxId") ? `none-${transaction.id}` : null);
  const fields = {
    event: order.type,
    referenceId: order.reference,
    payTxnId: transaction.id,
    status,
    amount: `${order.amount}0000`,
    callbackUrl: order.callbackUrl,
    message: transaction.message,
    providerTxId,
    timestamp,
    merchantId: order.onBehalfOf ?? merchant.merchantId,
    userId: merchant.userId,
    ...names.extra({ ...transaction, currency: order.currency }),
  };
  return {
    flow: "payments",
    event: order.type,
    deduplicationKey: transaction.id,
    reference: order.reference,
    status: transaction.status,
    url: order.callbackUrl,
    message: { flow: "payments", fields },
  };
}
