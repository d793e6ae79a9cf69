/** `npm run bench`: what Payhooks costs on top of a framework and the signature check. */
import { createTestKeys } from "@payhooks/core/testing";
import { signedDeliveries } from "./deliveries.ts";
import type { Variant } from "./protocol.ts";
import { measureRounds, PRIMERS, pairedRatios } from "./rounds.ts";
import { buildServer, startServer } from "./server.ts";
import { estimate, median } from "./statistics.ts";

const keys = { ...createTestKeys(), secret: "whsec_bench_0123456789abcdef" };
const server = await startServer(await buildServer(), { ...keys, redisUrl: null });
const R = Number(process.argv[2] ?? 8);
const N = Number(process.argv[3] ?? 3000);
const framework = (process.argv[4] ?? "express") as "express";
console.log(server.node);
for (const scheme of ["rsa", "hmac"] as const) {
  const deliveries = await signedDeliveries(scheme, N + PRIMERS, keys);
  const modes =
    scheme === "rsa"
      ? (["bare", "inline", "pem", "memory", "memory-accept"] as const)
      : (["bare", "inline", "memory", "memory-accept"] as const);
  const variants: Variant[] = modes.map((mode) => ({ framework, scheme, mode }));
  const t = performance.now();
  const samples = await measureRounds(server, { variants, deliveries, rounds: R, connections: 64 });
  console.log(scheme, ((performance.now() - t) / 1000).toFixed(1), "s");
  const inline = samples[1] ?? [];
  modes.forEach((mode, i) => {
    const own = samples[i] ?? [];
    const ratio = estimate(pairedRatios(inline, own));
    console.log(
      mode.padEnd(16),
      median(own.map((s) => s.cpuUs)).toFixed(1),
      "µs",
      median(own.map((s) => s.perSecond)).toFixed(0),
      "/s",
      "inline ÷ it",
      ratio.median.toFixed(3),
      `[${ratio.low.toFixed(3)}, ${ratio.high.toFixed(3)}]`,
    );
  });
}
await server.end();
