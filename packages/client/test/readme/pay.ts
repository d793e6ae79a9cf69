import { createClient, isClientError } from "@payhooks/client";

const client = createClient({
  baseUrl: process.env.PAY_BASE_URL,
  publicKey: process.env.PAY_API_PUBLIC_KEY,
  secretKey: process.env.PAY_API_SECRET_KEY,
});

/** The result comes later, as a callback. Store the reference before the call. */
export async function charge(reference: string, amount: string, phone: string): Promise<"sent" | "unknown"> {
  try {
    await client.pay({
      amount, // "10.50"
      currency: "ETB",
      phone_number: phone, // "251911000000"
      medium: "TELEBIRR",
      reference,
      callback_url: "https://merchant.example/callbacks/pay",
    });
    return "sent";
  } catch (error) {
    if (!isClientError(error) || error.code !== "ERR_OUTCOME_UNKNOWN") throw error;
    return "unknown"; // It may have been carried out: look it up, and never send it again.
  }
}
