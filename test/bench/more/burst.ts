/** How long the event loop is away while 10,000 deliveries arrive at once. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { senderTo } from "../load.ts";
import type { Mode } from "../protocol.ts";
import type { BurstFigures } from "../results.ts";
import type { ServerProcess } from "../server.ts";

/** As many as a receiver takes at one time before it answers 503. */
const CONNECTIONS = 1_000;

export async function measureBursts(
  server: ServerProcess,
  modes: readonly Mode[],
  deliveries: readonly SignedDelivery[],
): Promise<readonly BurstFigures[]> {
  const figures: BurstFigures[] = [];
  for (const mode of modes) {
    const variant = { framework: "express", scheme: "rsa", mode } as const;
    const sender = senderTo(await server.tell({ do: "open", variant }), CONNECTIONS);
    await server.tell({ do: "read", handled: 0 });
    const ms = await sender.send(deliveries);
    const { lagMs } = await server.tell({ do: "read", handled: 0 });
    await server.tell({ do: "read", handled: deliveries.length });
    await sender.close();
    figures.push({ mode, deliveries: deliveries.length, ms, lagMs });
  }
  return figures;
}
