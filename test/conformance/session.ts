import { type Case, type Outcome, shown, type Target } from "./case.ts";
import { effectsAt } from "./control.ts";

/** Runs the cases against one server, and tells what came of each. */
export class Session {
  readonly target: Target;
  #seen = 0;

  constructor(target: Target) {
    this.target = target;
  }

  /** The expected outcome of a case at this server. */
  expected(one: Case): Outcome {
    const own = this.target.own?.[one.name];
    const pick = (list: Case["answers"]): readonly string[] =>
      typeof list === "function" ? list(this.target) : list;
    if (own !== undefined) return { answers: own.answers, effects: own.effects ?? [] };
    return { answers: pick(one.answers), effects: [...pick(one.effects)].sort() };
  }

  async run(one: Case): Promise<Outcome> {
    const answers = (await one.send(this.target)).map(shown);
    const effects = await this.#effects(this.expected(one).effects.length);
    return { answers, effects };
  }

  /** Effects that came after their case was over. */
  late(): Promise<readonly string[]> {
    return this.#effects(0);
  }

  /** Effects come after the answer. This waits until as many are there as there should be. */
  async #effects(count: number): Promise<readonly string[]> {
    const end = Date.now() + 10_000;
    for (;;) {
      const all = await effectsAt(this.target.port);
      if (all.length >= this.#seen + count || Date.now() > end) {
        const fresh = all.slice(this.#seen);
        this.#seen = all.length;
        return fresh.sort();
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
