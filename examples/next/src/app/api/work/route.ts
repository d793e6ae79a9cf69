import { workRoute } from "@payhooks/next";
import { receiver } from "../../../lib/receiver";

// For a cron job: runs what is due, such as retries that no request has come by to run.
export const GET = workRoute(receiver, { secret: process.env.CRON_SECRET });
