/**
 * `npm run bench -- --backlog [--events 20000]`: events wait behind slow handlers, in each inbox. Accepting has to stay as
 * fast as beside an inbox where nothing waits, in the same run; what has waited longest goes first; and the process does
 * not keep in its memory what its store keeps.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Inbox } from "@payhooks/core/inbox";
import type { BackgroundRuns } from "../../packages/core/src/inbox/contract/inbox.ts";
import type { VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { until, withScope } from "../faults/harness/scope.ts";
import { idleRunner } from "./finished-records.ts";
import { heapInUse } from "./heap.ts";
import { type InboxName, openInbox } from "./inboxes.ts";
import { benchEvent } from "./redis-event.ts";
import { estimate, median, percentile, type Verdict, verdictAtMost } from "./statistics.ts";
import { figureOf, intervalOf, table } from "./table.ts";

const CONCURRENCY = 16;
/** Deliveries in flight. */
const LANES = 16;
const HANDLER_MS = 50;
const TURN = 500;
const ROUNDS = 20;
const WARM_UP_ROUNDS = 4;
/** p99 of an accept beside a backlog ÷ without one. */
const SLOWER_GOAL = 2;
/** Events that start before one that is older than they are: those that run beside it, and what fell due in the same moment. */
const PASSED_GOAL = 4 * CONCURRENCY;
/** Bytes of heap per waiting event: in memory the event itself, elsewhere nothing. */
const HEAP_GOAL: Readonly<Partial<Record<InboxName, number>>> = { memory: 4_096, SQLite: 256, Redis: 256 };
const DRAIN_MS = 120_000;

const at = process.argv.indexOf("--events");
const EVENTS = at < 0 ? 20_000 : Number(process.argv[at + 1]);

interface Measured {
  readonly name: InboxName;
  readonly idleP99: number;
  readonly backlogP99: number;
  readonly ratios: readonly number[];
  /** How many that came later were started before an event: the most of any. */
  readonly passed: number;
  readonly heapPerEvent: number;
  readonly drainedMs: number;
}

await withScope(async (scope) => {
  const redis = hasRedis() ? await RedisServer.start(scope, { aof: "everysec" }) : null;
  const names: readonly InboxName[] = redis === null ? ["memory", "SQLite"] : ["memory", "SQLite", "Redis"];
  const rows: string[][] = [];
  for (const name of names) rows.push(rowOf(await measure(name, redis?.url ?? null)));
  const head = ["inbox", "p99 idle", "p99 backlog", "ratio", "≤ 2", "passed by", `≤ ${PASSED_GOAL}`];
  console.log(`\n${EVENTS} events wait, handlers of ${HANDLER_MS} ms, ${CONCURRENCY} at one time`);
  console.log(table([...head, "heap per event", "in bounds", "drained in"], rows));
});

async function measure(name: InboxName, redisUrl: string | null): Promise<Measured> {
  const idle = await openInbox(name, { redisUrl, prefix: "idle" });
  const busy = await openInbox(name, { redisUrl, prefix: "busy" });
  /** By the event's key: the how-manieth it was. */
  const places = new Map<string, number>();
  const started: number[] = [];
  let handlerMs = HANDLER_MS;
  await idle.inbox.run(idleRunner, { concurrency: CONCURRENCY });
  const running: BackgroundRuns = await busy.inbox.run(
    {
      ...idleRunner,
      async run(run) {
        started.push(places.get(run.input.key) ?? Number.NaN);
        if (handlerMs > 0) await wait(handlerMs);
        return idleRunner.run(run);
      },
    },
    { concurrency: CONCURRENCY },
  );
  const accepting = async (inbox: Inbox, count: number, isKnown: boolean): Promise<readonly number[]> => {
    const events = Array.from({ length: count }, benchEvent);
    if (isKnown) for (const { key } of events) places.set(key, places.size);
    return acceptAll(inbox, events);
  };
  running.pause();
  const heapBefore = heapInUse();
  await accepting(busy.inbox, EVENTS, true);
  running.resume();
  await until("handlers run", async () => started.length >= CONCURRENCY);
  const idleTimes: (readonly number[])[] = [];
  const busyTimes: (readonly number[])[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    running.pause();
    const alone = await accepting(idle.inbox, TURN, false);
    running.resume();
    const beside = await accepting(busy.inbox, TURN, true);
    if (round < WARM_UP_ROUNDS) continue;
    idleTimes.push(alone);
    busyTimes.push(beside);
  }
  const waiting = places.size - started.length;
  // The numbers of the bench's own take their part of it.
  const heapPerEvent = (heapInUse() - heapBefore) / waiting;
  handlerMs = 0;
  const drainedFrom = performance.now();
  while (started.length < places.size) {
    if (performance.now() - drainedFrom > DRAIN_MS)
      throw new Error(`${name}: ${started.length} of ${places.size} ran`);
    await wait(10);
  }
  const drainedMs = performance.now() - drainedFrom;
  await idle.end();
  await busy.end();
  const p99 = (turns: readonly (readonly number[])[]): number[] =>
    turns.map((times) => percentile(times, 0.99));
  const [idleP99, backlogP99] = [p99(idleTimes), p99(busyTimes)];
  return {
    name,
    idleP99: median(idleP99),
    backlogP99: median(backlogP99),
    ratios: backlogP99.map((ms, round) => ms / (idleP99[round] ?? Number.NaN)),
    passed: passedMost(started),
    heapPerEvent,
    drainedMs,
  };
}

/** Milliseconds of each accept. */
async function acceptAll(inbox: Inbox, events: readonly VerifiedEvent[]): Promise<readonly number[]> {
  const times: number[] = [];
  const left = events.values();
  const lane = async (): Promise<void> => {
    for (const event of left) {
      const from = performance.now();
      const { outcome } = await inbox.accept(event);
      times.push(performance.now() - from);
      if (outcome !== "new") throw new Error(`a new event was ${outcome}`);
      // An inbox in memory answers at once: the others are to have their turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return times;
}

/** Of events that are started in this order: by how many later ones the unluckiest was passed. */
function passedMost(started: readonly number[]): number {
  let newest = -1;
  let most = 0;
  for (const place of started) {
    newest = Math.max(newest, place);
    most = Math.max(most, newest - place);
  }
  return most;
}

function rowOf({ name, idleP99, backlogP99, ratios, passed, heapPerEvent, drainedMs }: Measured): string[] {
  const ratio = estimate(ratios);
  const within = (isMet: boolean): Verdict => (isMet ? "met" : "missed");
  return [
    name,
    `${idleP99.toFixed(2)} ms`,
    `${backlogP99.toFixed(2)} ms`,
    `${figureOf(ratio.median)} (${intervalOf(ratio)})`,
    verdictAtMost(ratio, SLOWER_GOAL),
    String(passed),
    within(passed <= PASSED_GOAL),
    `${heapPerEvent.toFixed(0)} bytes`,
    within(heapPerEvent <= (HEAP_GOAL[name] ?? 256)),
    `${(drainedMs / 1_000).toFixed(1)} s`,
  ];
}
