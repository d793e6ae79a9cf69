import { paymentCallbacks } from "@payhooks/next";
import { inContextOf, REQUEST_HEADER } from "../../../../application.ts";
import { receiver } from "../../../receivers.ts";

const handler = paymentCallbacks(receiver("plain"));

export function POST(request: Request): Promise<Response> {
  return inContextOf(request.headers.get(REQUEST_HEADER), () => handler(request));
}
