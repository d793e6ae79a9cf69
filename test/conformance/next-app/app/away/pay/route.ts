import { paymentCallbacks } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

export const POST = paymentCallbacks(receiver("away"));
