/** Where the time goes in the cheapest framework, in which ours weighs the most. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { type Sender, senderTo } from "../load.ts";
import type { Mode } from "../protocol.ts";
import type { ProfileFigures } from "../results.ts";
import { WARM_UP_ROUNDS } from "../rounds.ts";
import type { ServerProcess } from "../server.ts";

const MODES: readonly Mode[] = ["inline", "memory-accept", "memory"];

interface Running {
  readonly mode: Mode;
  readonly id: number;
  readonly sender: Sender;
  readonly perRequest: Record<string, number>;
}

/** In rounds, as all comparisons: a machine that does other things too does so to every mode. */
export async function measureProfile(
  server: ServerProcess,
  deliveries: readonly SignedDelivery[],
  turnLength: number,
): Promise<readonly ProfileFigures[]> {
  const running: Running[] = [];
  for (const mode of MODES) {
    const variant = { framework: "fastify", scheme: "hmac", mode } as const;
    const { id, ...target } = await server.tell({ do: "open", variant, beside: running.length > 0 });
    running.push({ mode, id, sender: senderTo(target, 64), perRequest: {} });
  }
  const rounds = Math.floor(deliveries.length / turnLength);
  for (let round = 0; round < rounds; round++) {
    const turn = deliveries.slice(round * turnLength, (round + 1) * turnLength);
    for (const { mode, id, sender, perRequest } of running) {
      const { handled } = await server.tell({ do: "read", handled: 0, of: id });
      await server.tell({ do: "profile" });
      await sender.send(turn);
      await server.tell({ do: "read", handled: mode === "memory" ? handled + turn.length : 0, of: id });
      const profile = await server.tell({ do: "profiled" });
      await server.tell({ do: "work-off", of: id });
      if (round < WARM_UP_ROUNDS) continue;
      const requests = (rounds - WARM_UP_ROUNDS) * turnLength;
      for (const [place, us] of Object.entries(profile)) {
        perRequest[place] = (perRequest[place] ?? 0) + us / requests;
      }
    }
  }
  for (const { sender } of running) await sender.close();
  return running.map(({ mode, perRequest }) => ({ mode, cpuUs: perRequest }));
}
