import type { Checkout } from "../src/requests/checkout.ts";
import type { DirectPayment } from "../src/requests/direct-payment.ts";
import type { Withdrawal } from "../src/requests/withdrawal.ts";

export const keys = { publicKey: "pk_live_1", secretKey: "sk_live_only_for_tests" } as const;
export const apiKey = "ak_live_only_for_tests";

export const payment: DirectPayment = {
  amount: "10.50",
  currency: "ETB",
  phone_number: "251911000000",
  medium: "TELEBIRR",
  reference: "order-1",
};

export const withdrawal: Withdrawal = { amount: "99.00", reference: "payout-1" };

export const checkout: Checkout = {
  amount: "10.50",
  currency: "ETB",
  phone_number: "251911000000",
  reference: "order-1",
  redirects: { success: "https://shop.example/thanks", failed: "https://shop.example/sorry" },
  supported_mediums: ["MPESA", "CBE"],
};

/** A transaction as the service sends it. */
export const wireTransaction = {
  id: "6e0f9a43-6a36-4f7c-8f56-0d0a2a6f2d01",
  merchant_id: "0b6f6e0c-6b0e-4f0e-9d7e-3f2f6a1c0001",
  phone_number: "251 911000000",
  reference: "order-1",
  type: "DEPOSIT",
  medium: "TELEBIRR",
  message: "Payment completed",
  details: { RawMessage: null, Valid: false },
  status: "SUCCESS",
  base_amount: 10.5,
  callback_url: "https://merchant.example/callbacks/pay",
  success_url: "https://shop.example/thanks",
  failed_url: "https://shop.example/sorry",
  webhook_received: true,
  created_at: "2026-05-01T11:00:00.123456Z",
  updated_at: "2026-05-01T11:01:00.123456Z",
};

export const notFound = { success: true, data: { message: "no transaction found for reference" } };
