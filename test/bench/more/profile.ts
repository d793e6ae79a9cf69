/** Where the time goes in the cheapest framework, in which ours weighs the most. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { senderTo } from "../load.ts";
import type { Mode } from "../protocol.ts";
import type { ProfileFigures } from "../results.ts";
import type { ServerProcess } from "../server.ts";

const MODES: readonly Mode[] = ["inline", "memory-accept", "memory"];

/** The first half of the deliveries is not looked at: the engine compiles what is hot. */
export async function measureProfile(
  server: ServerProcess,
  deliveries: readonly SignedDelivery[],
): Promise<readonly ProfileFigures[]> {
  const half = Math.floor(deliveries.length / 2);
  const figures: ProfileFigures[] = [];
  for (const mode of MODES) {
    const variant = { framework: "fastify", scheme: "hmac", mode } as const;
    const { id, ...target } = await server.tell({ do: "open", variant });
    const sender = senderTo(target, 64);
    const handled = mode === "memory" ? half : 0;
    await sender.send(deliveries.slice(0, half));
    await server.tell({ do: "read", handled });
    await server.tell({ do: "work-off", of: id });
    await server.tell({ do: "profile" });
    await sender.send(deliveries.slice(half, 2 * half));
    await server.tell({ do: "read", handled: 2 * handled });
    const profile = await server.tell({ do: "profiled" });
    await sender.close();
    const perRequest = Object.entries(profile).map(([place, us]) => [place, us / half] as const);
    figures.push({ mode, cpuUs: Object.fromEntries(perRequest) });
  }
  return figures;
}
