import type { Environment } from "../time/environment.ts";
import { inTime } from "../time/in-time.ts";
import type { QueryClient, Row, SessionClient, Statement, Values } from "./client.ts";
import { isStale, NoAnswer, NotSent } from "./failure.ts";
import { explained } from "./refusal.ts";
import { isSpent as isSpentConnection } from "./spent.ts";

interface QueryAnswer {
  readonly rows: readonly unknown[];
}

/** Something that runs one statement at a time. */
export interface Session {
  run(statement: Statement, values?: Values): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** Settings of a session of `pg`. */
export interface SessionSettings {
  readonly make: () => SessionClient;
  readonly environment: Environment;
  /** The time after which a statement and its connection are given up. */
  readonly timeoutMs: number;
  /** Statements to run at the beginning of a session; null if a pooler gives each statement to another session. */
  readonly begin: string | null;
  /** Called for each notification of the server. */
  readonly onNotification?: (() => void) | undefined;
}

/** True if the next statement should use another connection, which may lead to another server. */
function isSpent(error: unknown): boolean {
  return isStale(error) || isSpentConnection(error);
}

/**
 * One connection. It is made when it is needed, and made again after it has failed. This side has a time limit for
 * statements too, because a server that is paused, or behind a broken cable, never answers.
 */
export class PgSession implements Session {
  readonly #settings: SessionSettings;
  #client: SessionClient | null = null;
  #isClosed = false;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
  }

  /** Rejects with {@link NotSent} if the statement never reached the server. */
  async run(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    const client = await this.#connected();
    const { begin, timeoutMs } = this.#settings;
    const { name, text, timeLimitMs = timeoutMs } = statement;
    const query = (): Promise<QueryAnswer> =>
      client.query({ text, values: [...values], ...(begin === null ? {} : { name }) });
    if (timeLimitMs === timeoutMs) return this.#inTime(client, query());
    // Behind a pooler, the session and its settings are not this process's own.
    if (begin === null) return this.#inTime(client, query(), timeLimitMs);
    await this.#inTime(client, client.query({ text: `SET statement_timeout = ${timeLimitMs}` }));
    try {
      return await this.#inTime(client, query(), timeLimitMs);
    } finally {
      await this.#restoreTimeLimit(client);
    }
  }

  /** Never rejects, because the statement before it has an answer already. A connection that keeps another limit is discarded. */
  async #restoreTimeLimit(client: SessionClient): Promise<void> {
    if (this.#client !== client) return;
    try {
      await this.#inTime(
        client,
        client.query({ text: `SET statement_timeout = ${this.#settings.timeoutMs}` }),
      );
    } catch {
      this.#discard(client);
    }
  }

  #discard(client: SessionClient): void {
    if (this.#client === client) this.#client = null;
    discard(client);
  }

  async #connected(): Promise<SessionClient> {
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
      throw new NotSent("there is no connection", { cause: explained(cause) });
    }
    if (this.#isClosed) {
      discard(client);
      throw new NotSent("the connection is closed");
    }
    this.#client = client;
    return client;
  }

  async #inTime(
    client: SessionClient,
    answer: Promise<QueryAnswer>,
    limitMs: number = this.#settings.timeoutMs,
  ): Promise<readonly Row[]> {
    try {
      return await rowsInTime(() => answer, this.#settings.environment, limitMs);
    } catch (error) {
      if (isSpent(error)) this.#discard(client);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = null;
    if (client !== null) discard(client);
  }
}

/** A client that is used as it is. Its connections are its own, but its answers have a time limit. */
export class GivenSession implements Session {
  readonly #client: QueryClient;
  readonly #environment: Environment;
  readonly #timeoutMs: number;

  constructor(client: QueryClient, environment: Environment, timeoutMs: number) {
    this.#client = client;
    this.#environment = environment;
    this.#timeoutMs = timeoutMs;
  }

  run({ text, givenClientLimitMs, timeLimitMs }: Statement, values: Values = []): Promise<readonly Row[]> {
    const limit = timeLimitMs ?? givenClientLimitMs ?? this.#timeoutMs;
    return rowsInTime(() => this.#client.query(text, [...values]), this.#environment, limit);
  }

  async close(): Promise<void> {}
}

/** Rejects with {@link NoAnswer} if there is no answer in time. */
async function rowsInTime(
  call: () => PromiseLike<QueryAnswer>,
  environment: Environment,
  timeoutMs: number,
): Promise<readonly Row[]> {
  const late = (): Error => new NoAnswer(`no answer within ${timeoutMs} ms`);
  const { rows } = await inTime(environment, timeoutMs, call, late);
  return rows as readonly Row[];
}

/**
 * If a statement is under way, `pg` destroys the socket. Otherwise it notifies the server, and waits for the end of the
 * connection. A server that has gone silent must not keep the process alive until then.
 */
function discard(client: SessionClient): void {
  void client.end().catch(() => {});
  client.unref?.();
}
