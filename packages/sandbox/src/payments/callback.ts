import type { NewDelivery } from "../deliveries/delivery.ts";
import type { Merchant } from "../keys/merchant.ts";
import type { TransactionRecord } from "./transactions.ts";

/**
 * The callback that announces a transaction's present status (specification, Payment callback events). Null if the
 * transaction has no callback address.
 */
export function callbackFor(
  record: TransactionRecord,
  merchant: Merchant,
  timestamp: string,
): NewDelivery | null {
  const { transaction, order, providerTxId } = record;
  if (order.callbackUrl === null) return null;
  const fields = {
    event: order.type,
    referenceId: order.reference,
    payTxnId: transaction.id,
    status: transaction.status,
    amount: `${order.amount}0000`,
    callbackUrl: order.callbackUrl,
    message: transaction.message,
    providerTxId,
    timestamp,
    merchantId: order.onBehalfOf ?? merchant.merchantId,
    userId: merchant.userId,
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
