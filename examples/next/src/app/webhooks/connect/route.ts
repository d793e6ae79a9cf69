import { connectWebhooks } from "@payhooks/next";
import { receiver } from "../../../lib/receiver";

export const POST = connectWebhooks(receiver);
