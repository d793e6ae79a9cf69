import { paymentCallbacks } from "@payhooks/next";
import { receiver } from "../../../lib/receiver";

export const POST = paymentCallbacks(receiver);
