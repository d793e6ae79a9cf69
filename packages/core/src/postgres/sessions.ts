import type { Environment } from "../time/environment.ts";
import type { Row, Statement, Values } from "./client.ts";
import { isRollback, NotSentError } from "./failure.ts";
import type { Session } from "./session.ts";

/** How often to try a statement that the server rolls back because of a deadlock or a conflict. */
const MAX_ATTEMPTS = 4;

/** Runs a statement, and repeats it if the server rolled it back because of a deadlock or a conflict. */
export async function runWithRetries(
  session: Session,
  statement: Statement,
  values: Values,
): Promise<readonly Row[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await session.run(statement, values);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isRollback(error)) throw error;
    }
  }
}

/**
 * A few sessions, each for one statement at a time. A caller that finds no free session waits for one, but not for
 * long.
 */
export class Sessions {
  readonly #freeSessions: Session[];
  readonly #allSessions: readonly Session[];
  readonly #environment: Environment;
  readonly #maxWaitMs: number;
  readonly #waiters = new Set<(session: Session) => void>();

  constructor(sessions: readonly Session[], environment: Environment, maxWaitMs: number) {
    this.#allSessions = sessions;
    this.#freeSessions = [...sessions];
    this.#environment = environment;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Runs one statement on a free session. */
  run(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    return this.use((session) => runWithRetries(session, statement, values));
  }

  /** Rejects with {@link NotSentError} if no session becomes free in time. */
  async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = this.#freeSessions.pop() ?? (await this.#wait());
    try {
      return await work(session);
    } finally {
      const [next] = this.#waiters;
      if (next === undefined) this.#freeSessions.push(session);
      else next(session);
    }
  }

  #wait(): Promise<Session> {
    return new Promise((resolve, reject) => {
      const onFree = (session: Session): void => {
        cancel();
        this.#waiters.delete(onFree);
        resolve(session);
      };
      const cancel = this.#environment.after(this.#maxWaitMs, () => {
        this.#waiters.delete(onFree);
        reject(new NotSentError("no connection became free in time"));
      });
      this.#waiters.add(onFree);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#allSessions.map((session) => session.close()));
  }
}
