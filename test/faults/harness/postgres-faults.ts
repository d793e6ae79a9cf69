/** Load on one process while PostgreSQL has a fault, and what has to come of it. */
import { expect } from "vitest";
import { testEvent } from "./events.ts";
import { PostgresServer, type ServerOptions } from "./postgres-server.ts";
import { ProcessUnderTest } from "./processes.ts";
import { NetworkProxy } from "./proxy.ts";
import { isLong, report } from "./report.ts";
import { newSeed, pause, sharedNow, until, withScope } from "./scope.ts";
import { Sender } from "./sender.ts";
import { BACK_WITHIN_MS, keys, SOUND, System, type Verdict, WORST_ANSWER_MS } from "./system.ts";

/** Longer than a delivery waits for a store that does not take its write: what is shorter, nobody hears of. */
const FAULT_MS = isLong ? 10_000 : 4_000;

/** The server, and the proxy by which the process reaches it. */
export interface Ground {
  readonly server: PostgresServer;
  readonly proxy: NetworkProxy;
}

/** How a fault begins and ends. */
export interface Fault {
  begin(ground: Ground): Promise<unknown> | unknown;
  end(ground: Ground): Promise<unknown> | unknown;
}

/** What came of it. */
export interface Played {
  readonly verdict: Verdict;
  readonly sender: Sender;
  /** On a machine that has nothing else to do. */
  readonly worstAnswerMs: number;
  /** From the fault's end until all that had been acknowledged was completed, on such a machine. */
  readonly backAfterMs: number;
  /** Answers while the fault was on. */
  readonly refused: number;
}

/** Load before, during and after a fault. */
export function play(
  name: string,
  { begin, end }: Fault,
  {
    faultMs = FAULT_MS,
    prepare = async () => {},
    ...options
  }: ServerOptions & {
    readonly faultMs?: number;
    /** Before anybody uses the server. */
    readonly prepare?: (server: PostgresServer) => Promise<unknown>;
  } = {},
): Promise<Played> {
  return withScope(async (scope) => {
    const server = await PostgresServer.start(scope, options);
    await prepare(server);
    const proxy = await NetworkProxy.start(scope, server.port);
    const inbox = { kind: "postgres", target: server.urlOf(proxy.port) } as const;
    const system = System.create(scope, inbox, newSeed(name));
    const config = await system.config({ handlerMs: 50 });
    await ProcessUnderTest.start(scope, config);
    const sender = scope.add(new Sender({ ports: [config.port], lanes: 48 }), (one) => one.close());
    let over = false;
    const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 50 });
    scope.add(null, () => {
      over = true;
      return sending;
    });
    const acknowledges = async (more: number): Promise<void> => {
      const enough = sender.acknowledged.size + more;
      await until("it acknowledges", () => sender.acknowledged.size >= enough);
    };
    await acknowledges(30);
    const before = sender.answered.length;
    await begin({ server, proxy });
    await pause(faultMs);
    const refused = sender.answered.slice(before).filter(({ status }) => status === 503).length;
    await end({ server, proxy });
    const endedAt = sharedNow();
    await acknowledges(30);
    over = true;
    await sending;
    const verdict = await system.judge(sender);
    const backAfterMs = system.longestMs(system.waitsSince(endedAt, sender), sender);
    report(name, verdict, sender, `during it: ${refused} × 503; all back after ${backAfterMs} ms`);
    return {
      verdict,
      sender,
      worstAnswerMs: system.longestMs(sender.answered, sender),
      backAfterMs,
      refused,
    };
  });
}

/** Nothing is lost, nothing is silently run twice, each answer comes in time, and all goes on soon after. */
export function expectSound({ verdict, sender, worstAnswerMs, backAfterMs }: Played): void {
  expect(verdict).toMatchObject(SOUND);
  expect(verdict.acknowledged).toBeGreaterThanOrEqual(60);
  expect(worstAnswerMs).toBeLessThanOrEqual(WORST_ANSWER_MS);
  expect(sender.unanswered).toBe(0);
  expect([...sender.answers.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(backAfterMs).toBeLessThanOrEqual(BACK_WITHIN_MS);
}
