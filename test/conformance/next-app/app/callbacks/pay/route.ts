import { paymentCallbacks } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

/** As the documentation has it: Next.js answers other methods by itself. */
export const POST = paymentCallbacks(receiver("plain"));
