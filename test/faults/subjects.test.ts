/** The order of the events about one account (docs/concepts/order.md), while the process that gets them is killed. */
import type { Inbox } from "@payhooks/core/inbox";
import { signConnectWebhook } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { InboxConfig } from "./harness/child-config.ts";
import type { TestEvent } from "./harness/events.ts";
import { newSqliteInbox, openInbox } from "./harness/inbox.ts";
import type { LogLine } from "./harness/log.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { lengthOf } from "./harness/report.ts";
import { newSeed, pause, type Scope, seededRandom, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { LONG_LEASE_MS, System } from "./harness/system.ts";

const SECRET = "whsec_faults_0123456789";
/** How many events the service sends about each account. */
const WORDS = 4;

/** The events about accounts, in any order, and copies of them. */
class AccountEvents {
  readonly #random: () => number;
  readonly #hasSubjects: boolean;
  readonly #waiting: TestEvent[] = [];
  #accounts = 0;

  constructor(seed: number, hasSubjects: boolean) {
    this.#random = seededRandom(seed);
    this.#hasSubjects = hasSubjects;
  }

  /** Any of those that wait: an event comes some time before or after its neighbours. */
  next(): TestEvent {
    while (this.#waiting.length < 12) this.#add();
    const at = Math.floor(this.#random() * this.#waiting.length);
    const [event] = this.#waiting.splice(at, 1);
    return event ?? this.next();
  }

  #add(): void {
    const account = `cm-${++this.#accounts}`;
    for (let turn = 0; turn < WORDS; turn++) {
      const event = this.#event(account, turn);
      this.#waiting.push(event);
      if (this.#random() < 0.3) this.#waiting.push(event);
    }
  }

  #event(account: string, turn: number): TestEvent {
    const key = `${account}/${turn}`;
    const decision = turn % 2 === 0 ? "approved" : "declined";
    const event = {
      event: `connected_account.${decision}`,
      idempotency_key: key,
      occurred_at: new Date(Date.now() - 60_000 + turn * 1_000).toISOString(),
      data: {
        object: "connected_account",
        id: this.#hasSubjects ? account : key,
        master_merchant_id: "mm-1",
        kyc_status: decision,
      },
    };
    const delivery = signConnectWebhook(event, SECRET);
    return { key, path: "/webhooks/connect", payTxnId: key, manner: "calm", delivery };
  }
}

function accountOf(key: string): string {
  return key.split("/")[0] ?? key;
}

function turnOf(key: string): number {
  return Number(key.split("/")[1]);
}

/** Each line of an event that was written after a handler of a later event of its account was called. */
function outOfOrder(lines: readonly LogLine[]): readonly LogLine[] {
  const latest = new Map<string, number>();
  return lines.filter(({ what, key }) => {
    if (what !== "started" && what !== "completed") return false;
    const begun = latest.get(accountOf(key)) ?? -1;
    if (what === "started") latest.set(accountOf(key), Math.max(begun, turnOf(key)));
    return turnOf(key) < begun;
  });
}

interface Played {
  readonly acknowledged: readonly string[];
  readonly lines: readonly LogLine[];
  /** The state of each acknowledged event. */
  readonly states: ReadonlyMap<string, string>;
}

/** Kills the process again and again, each time somewhere in its work, and lets the last one end everything. */
async function play(
  scope: Scope,
  inbox: InboxConfig,
  seed: number,
  kills: number,
  events: AccountEvents,
): Promise<Played> {
  const random = seededRandom(seed + 1);
  const system = System.create(scope, inbox, seed);
  const config = await system.config({
    connectSecret: SECRET,
    handlerMs: 60,
    throwRate: 0.2,
    // A lease that lapses only because the machine is slow would let two events run at one time.
    leaseMs: LONG_LEASE_MS,
  });
  const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
  let over = false;
  const sending = sender.run(() => events.next(), {
    isOver: () => over,
    perSecond: 60,
    withinMs: Number.POSITIVE_INFINITY,
  });
  scope.add(null, () => {
    over = true;
    return sending;
  });
  for (let kill = 0; kill < kills; kill++) {
    const one = await ProcessUnderTest.start(scope, config);
    const enough = sender.acknowledged.size + 20;
    await until("the process acknowledges", () => sender.acknowledged.size >= enough, { withinMs: 60_000 });
    await pause(random() * 150);
    await one.kill();
  }
  over = true;
  await sending;
  await ProcessUnderTest.start(scope, config);
  const looking = scope.add(openInbox(inbox), (one: Inbox) => one.close({ graceMs: 0 }));
  await until(
    "every event ends",
    async () => {
      const { waiting, retrying, running } = await looking.events.counts();
      return waiting + retrying + running === 0;
    },
    { withinMs: 120_000 },
  );
  const states = new Map<string, string>();
  const acknowledged = [...sender.acknowledged.keys()];
  for (const id of acknowledged) {
    const { events } = await looking.events.list({ flow: "connect", id });
    states.set(id, events.map(({ state }) => state).join());
  }
  return { acknowledged, lines: system.lines(), states };
}

const kills = lengthOf(5, 200);

describe.each<{ readonly name: string; readonly at: (scope: Scope) => Promise<InboxConfig> }>([
  { name: "Redis", at: async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url }) },
  { name: "SQLite", at: async (scope) => newSqliteInbox(scope) },
])("the events about an account, in $name,", ({ name, at }) => {
  it(`keep their order in ${kills} kills, and none is lost`, { timeout: 240_000 + kills * 4_000 }, () =>
    withScope(async (scope) => {
      const seed = newSeed(`events, ${name}`);
      const events = new AccountEvents(seed, true);
      const { acknowledged, lines, states } = await play(scope, await at(scope), seed, kills, events);
      expect(outOfOrder(lines)).toEqual([]);
      const completed = new Set(lines.flatMap(({ what, key }) => (what === "completed" ? [key] : [])));
      const begun = lines.flatMap(({ what, key }) => (what === "started" ? [key] : []));
      const isOvertaken = (key: string): boolean =>
        begun.some((other) => accountOf(other) === accountOf(key) && turnOf(other) > turnOf(key));
      const lost = acknowledged.filter((key) => {
        const state = states.get(key);
        return !(state === "done" && completed.has(key)) && !(state === "stale" && isOvertaken(key));
      });
      expect(lost).toEqual([]);
      expect(acknowledged.length).toBeGreaterThanOrEqual(kills * 20);
      expect([...states.values()]).toContain("stale");
    }),
  );
});

it(
  "control: without a subject in common, the same kills let an event run after a later one",
  { timeout: 240_000 },
  () =>
    withScope(async (scope) => {
      const seed = newSeed("events, control");
      const { lines } = await play(scope, newSqliteInbox(scope), seed, 3, new AccountEvents(seed, false));
      expect(outOfOrder(lines).length).toBeGreaterThan(0);
    }),
);
