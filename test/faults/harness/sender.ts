import { Agent, type IncomingMessage, request } from "node:http";
import type { TestEvent } from "./events.ts";
import { type Span, watchLag } from "./lag.ts";
import { pause, sharedNow } from "./scope.ts";

/** Options of {@link Sender}. */
export interface SenderOptions {
  /** Ports on loopback; a retry goes to the next one. */
  readonly ports: readonly number[];
  /** Requests at one time. */
  readonly lanes?: number;
  /** How long between an attempt that failed and the next. */
  readonly retryMs?: number;
}

/** One answer, from when its request left to when it was whole. */
export interface Answer extends Span {
  /** The event's. */
  readonly key: string;
  readonly status: number;
}

/** How one attempt ended: a status, or null when the connection broke before there was one. */
interface Attempt {
  readonly status: number | null;
  readonly tookMs: number;
}

const GIVE_UP_ON_ANSWER_MS = 8_000;

/** A stand-in for the service: keeps connections alive and repeats a delivery until it is answered with 2xx. */
export class Sender {
  /** The deliveries that were answered with 2xx, by key: the receiver has promised not to lose them. */
  readonly acknowledged: Map<string, TestEvent> = new Map();
  /** Answers by status. */
  readonly answers: Map<number, number> = new Map();
  /** Attempts without an answer. Only a process that was killed may leave any. */
  unanswered = 0;
  worstAnswerMs = 0;
  /** In the order in which they came. */
  readonly answered: Answer[] = [];
  /** When the machine kept this sender itself waiting. */
  readonly lags: Span[] = [];
  readonly #ports: readonly number[];
  readonly #lanes: number;
  readonly #retryMs: number;
  readonly #agent: Agent;
  readonly #endLagWatch: () => void;
  #turn = 0;

  constructor({ ports, lanes = 16, retryMs = 40 }: SenderOptions) {
    this.#ports = ports;
    this.#lanes = lanes;
    this.#retryMs = retryMs;
    this.#agent = new Agent({ keepAlive: true, maxSockets: lanes });
    this.#endLagWatch = watchLag((lag) => this.lags.push(lag));
  }

  /**
   * Sends what `next` gives, until it gives null, each until it is acknowledged or `isOver` says so. At most
   * `perSecond` new events.
   */
  async run(
    next: () => TestEvent | null,
    {
      isOver = () => false,
      perSecond = Number.POSITIVE_INFINITY,
      withinMs = 600_000,
    }: {
      readonly isOver?: () => boolean;
      readonly perSecond?: number;
      readonly withinMs?: number;
    } = {},
  ): Promise<void> {
    const startedAt = performance.now();
    const ended = (): boolean => isOver() || performance.now() - startedAt > withinMs;
    let given = 0;
    const lane = async (): Promise<void> => {
      while (!ended()) {
        const early = (given / perSecond) * 1000 - (performance.now() - startedAt);
        if (early > 0) {
          await pause(Math.min(early, 50));
          continue;
        }
        given++;
        const event = next();
        if (event === null) return;
        await this.#sendUntilAcknowledged(event, ended);
      }
    };
    await Promise.all(Array.from({ length: this.#lanes }, lane));
  }

  /** Sends each of them until it is acknowledged. */
  async sendAll(events: readonly TestEvent[], withinMs = 60_000): Promise<void> {
    let at = 0;
    await this.run(() => events[at++] ?? null, { withinMs });
  }

  /** Sends one event once. */
  async attempt(event: TestEvent, port?: number): Promise<Attempt> {
    const from = sharedNow();
    const attempt = await this.#post(event, port ?? this.#nextPort());
    const { status, tookMs } = attempt;
    if (status === null) {
      this.unanswered++;
      return attempt;
    }
    this.answered.push({ from, to: sharedNow(), key: event.key, status });
    this.worstAnswerMs = Math.max(this.worstAnswerMs, tookMs);
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
    if (status >= 200 && status < 300) this.acknowledged.set(event.key, event);
    return attempt;
  }

  /** The share of answers that were 200. */
  get shareAcknowledged(): number {
    let all = 0;
    for (const times of this.answers.values()) all += times;
    return all === 0 ? 0 : (this.answers.get(200) ?? 0) / all;
  }

  close(): void {
    this.#endLagWatch();
    this.#agent.destroy();
  }

  async #sendUntilAcknowledged(event: TestEvent, isOver: () => boolean): Promise<void> {
    for (;;) {
      const { status } = await this.attempt(event);
      if ((status !== null && status < 300) || isOver()) return;
      await pause(this.#retryMs);
    }
  }

  #nextPort(): number {
    return this.#ports[this.#turn++ % this.#ports.length] ?? 0;
  }

  #post({ delivery, path }: TestEvent, port: number): Promise<Attempt> {
    const startedAt = performance.now();
    const { rawBody, headers } = delivery;
    return new Promise((resolve) => {
      const end = (status: number | null): void => resolve({ status, tookMs: performance.now() - startedAt });
      const outgoing = request(
        {
          host: "127.0.0.1",
          port,
          path,
          method: "POST",
          agent: this.#agent,
          headers: { ...headers, "content-length": rawBody.byteLength },
        },
        (response: IncomingMessage) => {
          response.resume();
          response.once("end", () => end(response.statusCode ?? null));
          response.once("error", () => end(null));
          response.once("close", () => end(response.complete ? (response.statusCode ?? null) : null));
        },
      );
      outgoing.setTimeout(GIVE_UP_ON_ANSWER_MS, () => outgoing.destroy());
      outgoing.once("error", () => end(null));
      outgoing.end(rawBody);
    });
  }
}
