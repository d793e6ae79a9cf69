/** How long a sender waits for the answer while handlers take 300 ms. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { senderTo } from "../load.ts";
import type { Mode } from "../protocol.ts";
import type { LatencyFigures } from "../results.ts";
import { PRIMERS } from "../rounds.ts";
import type { ServerProcess } from "../server.ts";
import { percentile } from "../statistics.ts";

const IN_FLIGHT = 64;

export async function measureLatency(
  server: ServerProcess,
  modes: readonly Mode[],
  deliveries: readonly SignedDelivery[],
): Promise<readonly LatencyFigures[]> {
  const figures: LatencyFigures[] = [];
  for (const mode of modes) {
    const variant = { framework: "express", scheme: "rsa", mode, handlerMs: 300 } as const;
    const sender = senderTo(await server.tell({ do: "open", variant }), IN_FLIGHT);
    await sender.send(deliveries.slice(0, PRIMERS));
    const times: number[] = [];
    await sender.send(deliveries.slice(PRIMERS), (ms) => times.push(ms));
    await sender.close();
    figures.push({
      mode,
      requests: times.length,
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      p999: percentile(times, 0.999),
    });
  }
  return figures;
}
