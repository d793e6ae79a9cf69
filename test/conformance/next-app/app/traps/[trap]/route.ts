import { connectWebhooks } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

const traps: Readonly<Record<string, (request: Request) => unknown>> = {
  "json-parsed": (request) => request.json(),
  "text-read": (request) => request.text(),
  "bytes-read": (request) => request.arrayBuffer(),
  "stream-taken": (request) => request.body?.getReader(),
  "exact-bytes-of-a-clone-left": (request) => request.clone().text(),
};
const handler = connectWebhooks(receiver("plain"));

export async function POST(request: Request): Promise<Response> {
  const trap = new URL(request.url).pathname.split("/").at(-1) ?? "";
  await traps[trap]?.(request);
  return handler(request);
}
