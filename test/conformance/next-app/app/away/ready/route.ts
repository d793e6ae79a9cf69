import { ready } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

export const GET = ready(receiver("away"), { maxDueAgeMs: 3_600_000 });
