import type { InboxParts } from "./parts.ts";

/** How often to look. A look takes some time too; together, a loss is noticed within 5 s. */
const LOOK_EVERY_MS = 2_000;

/** Checks every two seconds whether the store still has its data. Nothing else would notice that it was lost. */
export class LossWatch {
  readonly #parts: InboxParts;
  readonly #suspect: () => void;
  #lostAt: number | null = null;
  #looking: Promise<void> | null = null;

  /** @param suspect called if the store cannot be asked. */
  constructor(parts: InboxParts, suspect: () => void) {
    this.#parts = parts;
    this.#suspect = suspect;
  }

  /** When a loss was last noticed, on this process's clock; null if never. */
  get lostAt(): number | null {
    return this.#lostAt;
  }

  /** Looks every two seconds until the inbox closes. */
  start(): void {
    if (this.#parts.store.findLoss === undefined) return;
    this.#parts.environment.after(LOOK_EVERY_MS, () => {
      if (!this.#parts.isClosing) void this.look().finally(() => this.start());
    });
  }

  /** Looks now. Never rejects: a store that cannot be reached says nothing about its data. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { store, environment, notify } = this.#parts;
    try {
      const loss = (await store.findLoss?.()) ?? null;
      if (loss === null) return;
      this.#lostAt = environment.now();
      notify({ type: "data-lost", why: loss });
    } catch {
      // That says nothing about the data. But perhaps the store is away.
      this.#suspect();
    }
  }
}
