import type { Context } from "hono";
import type { TransactionRecord } from "../payments/transactions.ts";

/**
 * The answer to a direct payment, a withdrawal or a checkout, whose body the specification does not show. Clients of
 * such services read different names. So it has the id and the reference under several names, and the address of the
 * hosted page under two. A status of `SUCCESS` says that the call succeeded; the transaction's own is in `data`.
 *
 * @param idFields the deployment's own names of the id
 * @param checkoutUrl null unless it is a checkout
 */
export function answerOrder(
  c: Context,
  record: TransactionRecord,
  idFields: readonly string[],
  checkoutUrl: string | null,
): Response {
  const { id, reference, type, status, message, medium, created_at } = record.transaction;
  const links = { checkout_url: checkoutUrl, payment_url: checkoutUrl };
  return answer(c, record, idFields, { id, reference, type, status, message, medium, created_at, ...links });
}

/** The answer to a look-up by id, whose body the specification does not show, in the same form. */
export function answerLookUp(c: Context, record: TransactionRecord, idFields: readonly string[]): Response {
  return answer(c, record, idFields, record.transaction);
}

function answer(
  c: Context,
  { transaction, order }: TransactionRecord,
  idFields: readonly string[],
  data: object,
): Response {
  const { id, reference, message } = transaction;
  const { currency } = order;
  const ids = Object.fromEntries(["transaction_id", ...idFields].map((name) => [name, id]));
  return c.json({
    reference_id: reference,
    ...ids,
    success: true,
    status: "SUCCESS",
    message,
    data: { ...ids, ...data, amount: Number(order.amount), currency },
  });
}
