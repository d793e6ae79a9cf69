import type { Context } from "hono";
import type { TransactionRecord } from "../payments/transactions.ts";

/**
 * The answer to a direct payment, a withdrawal or a checkout, whose body the specification does not show. It has what
 * the clients of such services read, which differ: the id and the reference under several names, and the address of
 * the hosted page under two. A status of `SUCCESS` says that the call succeeded; the transaction's own is in `data`.
 *
 * @param checkoutUrl null unless it is a checkout
 */
export function accepted(c: Context, record: TransactionRecord, checkoutUrl: string | null): Response {
  const { id, reference, type, status, message, medium, created_at } = record.transaction;
  const links = { checkout_url: checkoutUrl, payment_url: checkoutUrl };
  return answer(c, record, { id, reference, type, status, message, medium, created_at, ...links });
}

/** The answer to a look-up by id, whose body the specification does not show, in the same form. */
export function shown(c: Context, record: TransactionRecord): Response {
  return answer(c, record, record.transaction);
}

function answer(c: Context, { transaction, order }: TransactionRecord, data: object): Response {
  const { id, reference, message } = transaction;
  const { currency } = order;
  return c.json({
    success: true,
    status: "SUCCESS",
    message,
    reference_id: reference,
    transaction_id: id,
    data: { ...data, transaction_id: id, amount: Number(order.amount), currency },
  });
}
