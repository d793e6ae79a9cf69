import { paymentCallbacks } from "@payhooks/next";
import { receiver } from "../../../../receivers.ts";

const shopIn = (request: Request): string =>
  decodeURIComponent(new URL(request.url).pathname.split("/")[2] ?? "");

export const POST = paymentCallbacks(receiver("tenants"), { tenant: shopIn });
