import type { Owner } from "./timeline.ts";
import type { FaultTarget, World } from "./world.ts";

interface Listener {
  readonly process: FaultTarget & Owner;
  readonly wake: () => boolean;
}

/** How long a hint that is late takes. */
const LATE_MS = 700;

/** Carries hints from one process to the others: each may get lost, or be late, or come twice. */
export class Links {
  readonly #world: World;
  readonly #listeners = new Set<Listener>();

  constructor(world: World) {
    this.#world = world;
  }

  listen(process: FaultTarget & Owner, wake: () => boolean): () => void {
    const listener = { process, wake };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  announce(from: FaultTarget): void {
    const { timeline, dice } = this.#world;
    for (const { process, wake } of this.#listeners) {
      if (process === from || !process.isAlive) continue;
      const callFault = this.#world.meet("hint", "before", process);
      if (callFault === "not-made") continue;
      const hint = (): void => {
        wake();
        this.#world.meet("hint", "after", process);
      };
      const way = dice.between(0.2, 3, "hint", this.#world.count("hints"));
      timeline.at(timeline.now + way + (callFault === "late" ? LATE_MS : 0), process, hint);
      if (callFault === "twice") timeline.at(timeline.now + way + 1, process, hint);
    }
  }
}
