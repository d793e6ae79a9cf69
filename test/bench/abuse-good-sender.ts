/** Good deliveries, one after the other, from a process of its own: `{ port, seconds }` in, `{ p99, refused }` out. */
import { connectEvent, signConnectWebhook } from "@payhooks/core/testing";
import { PATHS } from "../e2e/merchant-server.ts";
import { request, Wire } from "../e2e/wire.ts";
import { percentile } from "./statistics.ts";

const SECRET = process.env.CONNECT_WEBHOOK_SECRET ?? "";

process.on("message", async ({ port, seconds }: { port: number; seconds: number }) => {
  const times: number[] = [];
  let refused = 0;
  const wire = await Wire.open(port);
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
    const { rawBody, headers } = signConnectWebhook(connectEvent(), SECRET);
    const bytes = request("POST", PATHS.connect, Object.entries(headers), rawBody);
    const from = performance.now();
    await wire.write(bytes);
    const { status } = await wire.answer();
    times.push(performance.now() - from);
    if (status !== 200) refused++;
  }
  wire.destroy();
  process.send?.({ p99: percentile(times, 0.99), refused });
});
process.once("disconnect", () => process.exit());
