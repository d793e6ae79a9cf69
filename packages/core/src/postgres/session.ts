import type { Environment } from "../time/environment.ts";
import type { PgClient, Row, Statement, Values } from "./client.ts";
import { codeOf, isReadOnly, NoAnswer, NotSent } from "./failure.ts";

/** Whatever runs one statement at a time. */
export interface Session {
  run(statement: Statement, values?: Values): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** How sessions of `pg` are kept. */
export interface SessionSettings {
  readonly make: () => PgClient;
  readonly environment: Environment;
  /** When a statement is given up, and its connection with it. */
  readonly timeoutMs: number;
  /** Statements at the beginning of a session; null where a pooler gives each statement to another one. */
  readonly begin: string | null;
  /** What the server announces. */
  readonly onNotification?: (() => void) | undefined;
}

/** Codes after which the next statement had better go to another connection: it may lead to another server. */
function isSpent(error: unknown): boolean {
  const code = codeOf(error);
  return code === null || isReadOnly(error) || /^(?:08|57P|58|XX)/.test(code);
}

/**
 * One connection, made when it is needed, and made anew when it failed. A statement is given up on this side too: a
 * server that is paused, or behind a cable that was cut, never says so.
 */
export class PgSession implements Session {
  readonly #settings: SessionSettings;
  #client: PgClient | null = null;
  #isClosed = false;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
  }

  /** Rejects with {@link NotSent} where the server never heard of the statement. */
  async run({ name, text }: Statement, values: Values = []): Promise<readonly Row[]> {
    const client = await this.#connected();
    const { begin } = this.#settings;
    return this.#inTime(
      client,
      client.query({ text, values: [...values], ...(begin === null ? {} : { name }) }),
    );
  }

  async #connected(): Promise<PgClient> {
    if (this.#client !== null) return this.#client;
    if (this.#isClosed) throw new NotSent("the connection is closed");
    const { make, begin, onNotification } = this.#settings;
    const client = make();
    const gone = (): void => {
      if (this.#client === client) this.#client = null;
    };
    // Without a listener, the end of a connection would end the process.
    client.on("error", gone);
    client.on("end", gone);
    if (onNotification !== undefined) client.on("notification", onNotification);
    try {
      await client.connect();
      if (begin !== null) await this.#inTime(client, client.query({ text: begin }));
    } catch (cause) {
      discard(client);
      throw new NotSent("there is no connection", { cause });
    }
    if (this.#isClosed) {
      discard(client);
      throw new NotSent("the connection is closed");
    }
    this.#client = client;
    return client;
  }

  async #inTime(
    client: PgClient,
    answer: Promise<{ readonly rows: readonly unknown[] }>,
  ): Promise<readonly Row[]> {
    const { environment, timeoutMs } = this.#settings;
    let cancel = (): void => {};
    const late = new Promise<never>((_, reject) => {
      cancel = environment.after(timeoutMs, () => reject(new NoAnswer(`no answer within ${timeoutMs} ms`)));
    });
    try {
      return (await Promise.race([answer, late])).rows as readonly Row[];
    } catch (error) {
      // Given up, it fails later: nobody is to hear of that.
      answer.catch(() => {});
      if (isSpent(error)) {
        if (this.#client === client) this.#client = null;
        discard(client);
      }
      throw error;
    } finally {
      cancel();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = null;
    if (client !== null) discard(client);
  }
}

/** With a statement under way the socket is destroyed, otherwise the server is told. */
function discard(client: PgClient): void {
  void client.end().catch(() => {});
}
