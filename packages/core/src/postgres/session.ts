import type { Environment } from "../time/environment.ts";
import { withTimeout } from "../time/with-timeout.ts";
import type { QueryClient, Row, SessionClient, Statement, Values } from "./client.ts";
import { isConnectionLost } from "./connection-errors.ts";
import { isStatementStale, NoAnswerError, NotSentError } from "./failure.ts";
import { explainConnectionError } from "./refusal.ts";

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
  readonly makeClient: () => SessionClient;
  readonly environment: Environment;
  /** The time after which a statement and its connection are given up. */
  readonly timeoutMs: number;
  /** Statements to run at the beginning of a session; null if a pooler gives each statement to another session. */
  readonly setupSql: string | null;
  /** Called for each notification of the server. */
  readonly onNotification?: (() => void) | undefined;
}

/** True if the next statement should use another connection, which may lead to another server. */
function needsNewConnection(error: unknown): boolean {
  return isStatementStale(error) || isConnectionLost(error);
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

  /** Rejects with {@link NotSentError} if the statement never reached the server. */
  async run(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    const client = await this.#connect();
    const { setupSql, timeoutMs } = this.#settings;
    const { name, text, timeLimitMs = timeoutMs } = statement;
    const query = (): Promise<QueryAnswer> =>
      client.query({ text, values: [...values], ...(setupSql === null ? {} : { name }) });
    if (timeLimitMs === timeoutMs) return this.#awaitAnswer(client, query());
    // Behind a pooler, the session and its settings are not this process's own.
    if (setupSql === null) return this.#awaitAnswer(client, query(), timeLimitMs);
    await this.#awaitAnswer(client, client.query({ text: `SET statement_timeout = ${timeLimitMs}` }));
    try {
      return await this.#awaitAnswer(client, query(), timeLimitMs);
    } finally {
      await this.#restoreTimeLimit(client);
    }
  }

  /** Never rejects, because the statement before it has an answer already. A connection that keeps another limit is discarded. */
  async #restoreTimeLimit(client: SessionClient): Promise<void> {
    if (this.#client !== client) return;
    try {
      await this.#awaitAnswer(
        client,
        client.query({ text: `SET statement_timeout = ${this.#settings.timeoutMs}` }),
      );
    } catch {
      this.#discard(client);
    }
  }

  #discard(client: SessionClient): void {
    if (this.#client === client) this.#client = null;
    endClient(client);
  }

  async #connect(): Promise<SessionClient> {
    if (this.#client !== null) return this.#client;
    if (this.#isClosed) throw new NotSentError("the connection is closed");
    const { makeClient, setupSql, onNotification } = this.#settings;
    const client = makeClient();
    const dropClient = (): void => {
      if (this.#client === client) this.#client = null;
    };
    // Without a listener, the end of a connection would end the process.
    client.on("error", dropClient);
    client.on("end", dropClient);
    if (onNotification !== undefined) client.on("notification", onNotification);
    try {
      await client.connect();
      if (setupSql !== null) await this.#awaitAnswer(client, client.query({ text: setupSql }));
    } catch (cause) {
      endClient(client);
      throw new NotSentError("there is no connection", { cause: explainConnectionError(cause) });
    }
    if (this.#isClosed) {
      endClient(client);
      throw new NotSentError("the connection is closed");
    }
    this.#client = client;
    return client;
  }

  async #awaitAnswer(
    client: SessionClient,
    answer: Promise<QueryAnswer>,
    limitMs: number = this.#settings.timeoutMs,
  ): Promise<readonly Row[]> {
    try {
      return await queryWithTimeout(() => answer, this.#settings.environment, limitMs);
    } catch (error) {
      if (needsNewConnection(error)) this.#discard(client);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = null;
    if (client !== null) endClient(client);
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
    const limitMs = timeLimitMs ?? givenClientLimitMs ?? this.#timeoutMs;
    return queryWithTimeout(() => this.#client.query(text, [...values]), this.#environment, limitMs);
  }

  async close(): Promise<void> {}
}

/** Rejects with {@link NoAnswerError} if there is no answer in time. */
async function queryWithTimeout(
  call: () => PromiseLike<QueryAnswer>,
  environment: Environment,
  timeoutMs: number,
): Promise<readonly Row[]> {
  const timeoutError = (): Error => new NoAnswerError(`no answer within ${timeoutMs} ms`);
  const { rows } = await withTimeout(environment, timeoutMs, call, timeoutError);
  return rows as readonly Row[];
}

/**
 * If a statement is under way, `pg` destroys the socket. Otherwise it notifies the server, and waits for the end of the
 * connection. A server that has gone silent must not keep the process alive until then.
 */
function endClient(client: SessionClient): void {
  void client.end().catch(() => {});
  client.unref?.();
}
