import { connectWebhooks } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

export const POST = connectWebhooks(receiver("plain"));
/** Exported under other methods, the handler answers them as everywhere. */
export { POST as DELETE, POST as GET, POST as HEAD, POST as OPTIONS, POST as PATCH, POST as PUT };
