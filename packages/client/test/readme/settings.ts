import { createClient } from "@payhooks/client";

const client = createClient({
  baseUrl: process.env.PAY_BASE_URL,
  apiKey: process.env.PAY_CONNECT_API_KEY,
});

/** Tells the service where to send connected-account webhooks, and how to sign them. */
export async function register(secret: string): Promise<void> {
  await client.setWebhookSettings({
    webhook_url: "https://merchant.example/webhooks/connect",
    webhook_secret: secret,
    webhook_enabled: true,
  });
}
