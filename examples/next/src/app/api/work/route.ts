import { workRoute } from "@payhooks/next";
import { receiver } from "../../../lib/receiver";

// For a cron job: runs what is due, such as retries that fall due while there is no traffic.
export const GET = workRoute(receiver, { secret: process.env.CRON_SECRET });
