import type { Environment } from "../time/environment.ts";
import type { Row, Statement, Values } from "./client.ts";
import { isRollback, NotSent } from "./failure.ts";
import type { Session } from "./session.ts";

/** How often to try a statement that the server rolls back because of a deadlock or a conflict. */
const ATTEMPTS = 4;

/** Runs a statement, and repeats it if the server rolled it back because of a deadlock or a conflict. */
export async function runAgain(
  session: Session,
  statement: Statement,
  values: Values,
): Promise<readonly Row[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await session.run(statement, values);
    } catch (error) {
      if (attempt === ATTEMPTS || !isRollback(error)) throw error;
    }
  }
}

/**
 * A few sessions, each for one statement at a time. A caller that finds no free session waits for one, but not for
 * long.
 */
export class Sessions {
  readonly #free: Session[];
  readonly #all: readonly Session[];
  readonly #environment: Environment;
  readonly #maxWaitMs: number;
  readonly #line = new Set<(session: Session) => void>();

  constructor(sessions: readonly Session[], environment: Environment, maxWaitMs: number) {
    this.#all = sessions;
    this.#free = [...sessions];
    this.#environment = environment;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Runs one statement on a free session. */
  run(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    return this.use((session) => runAgain(session, statement, values));
  }

  /** Rejects with {@link NotSent} if no session becomes free in time. */
  async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = this.#free.pop() ?? (await this.#wait());
    try {
      return await work(session);
    } finally {
      const [next] = this.#line;
      if (next === undefined) this.#free.push(session);
      else next(session);
    }
  }

  #wait(): Promise<Session> {
    return new Promise((resolve, reject) => {
      const take = (session: Session): void => {
        cancel();
        this.#line.delete(take);
        resolve(session);
      };
      const cancel = this.#environment.after(this.#maxWaitMs, () => {
        this.#line.delete(take);
        reject(new NotSent("no connection became free in time"));
      });
      this.#line.add(take);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((session) => session.close()));
  }
}
