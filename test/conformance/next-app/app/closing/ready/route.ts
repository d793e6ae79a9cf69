import { ready } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

export const GET = ready(receiver("closing"), { maxDueAgeMs: 3_600_000 });
