import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eachEvent } from "@payhooks/core/events";
import { createTestKeys, type TestKeys } from "@payhooks/core/testing";
import { freePort } from "../../support/free-port.ts";
import type { ChildConfig, InboxConfig } from "./child-config.ts";
import { openInbox } from "./inbox.ts";
import { lengthWithoutLag, type Span } from "./lag.ts";
import { type LogLine, readLog } from "./log.ts";
import { isLong } from "./report.ts";
import { type Scope, until } from "./scope.ts";
import type { Answer, Sender } from "./sender.ts";

/** One key pair for all tests of a file, since making one takes time. */
export const keys: TestKeys = createTestKeys();

/** Leases are shortened, so that what a dead process held is taken back within the test. */
export const LEASE_MS = 1_000;
const POLL_MS = 500;

/** The lease of tests in which no process dies: too long to lapse only because the machine is slow. */
export const LONG_LEASE_MS = 5_000;

/** An answer's longest wait: `acceptTimeoutMs`, and half a second for the way there and back. */
export const WORST_ANSWER_MS = 2_500;

/** After Redis's return, events are consumed again within so long; with the leases here, so are those in hand. */
export const BACK_WITHIN_MS = 5_000;

/** A process that stood still for so long within that time may have run into a timeout without a fault of Redis or of ours. */
const EXCUSE_MS = 500;

/**
 * For how long an event that is not lost may leave no trace, beyond a lease: until the next look behind that, and 5 s until
 * a write that the store refused is repeated. And some more, for a machine that has other things to do.
 */
const NO_TRACE_MS = 9_000;

/** The outcome of a test with a fault. */
export interface Verdict {
  readonly acknowledged: number;
  readonly completed: number;
  readonly held: number;
  /** Acknowledged, but neither completed nor held, nor dropped by a person. */
  readonly lost: readonly string[];
  /** Acknowledged and held, but no onHeld handler was told. */
  readonly unreported: readonly string[];
  /** Completed more than once. */
  readonly doubles: readonly string[];
  /** Of these, the ones that no `double-risk` notice announced: never allowed. */
  readonly silentDoubles: readonly string[];
}

/** Checks the outcome that every fault must have. */
export const SOUND: Pick<Verdict, "lost" | "unreported" | "silentDoubles"> = {
  lost: [],
  unreported: [],
  silentDoubles: [],
};

/** True if the suite's own check catches an outcome. */
export function isCaught({ lost, unreported, silentDoubles }: Verdict): boolean {
  return lost.length + unreported.length + silentDoubles.length > 0;
}

const NOTHING_KEPT = { held: new Set<string>(), discarded: new Set<string>() } as const;

function isAtRest({ lost, unreported }: Verdict): boolean {
  return lost.length + unreported.length === 0;
}

/** The processes under test of one test: everything that they share, and the outcome of their events. */
export class System {
  readonly inbox: InboxConfig;
  readonly log: string;
  readonly seed: number;

  private constructor(inbox: InboxConfig, directory: string, seed: number) {
    this.inbox = inbox;
    this.seed = seed;
    this.log = join(directory, "handlers.log");
    writeFileSync(this.log, "");
  }

  static create(scope: Scope, inbox: InboxConfig, seed: number): System {
    const directory = mkdtempSync(join(tmpdir(), "payhooks-log-"));
    scope.add(directory, (path) => rmSync(path, { recursive: true, force: true }));
    return new System(inbox, directory, seed);
  }

  /** The configuration of a process, on a free port unless one is given. */
  async config(overrides: Partial<ChildConfig> = {}): Promise<ChildConfig> {
    return {
      port: overrides.port ?? (await freePort()),
      log: this.log,
      publicKey: keys.publicKey,
      inbox: this.inbox,
      leaseMs: LEASE_MS,
      pollMs: POLL_MS,
      run: "background",
      concurrency: 16,
      handlerMs: 20,
      throwRate: 0,
      maxAttempts: 25,
      timeoutMs: 60_000,
      seed: this.seed,
      ...overrides,
    };
  }

  lines(what?: LogLine["what"]): readonly LogLine[] {
    const lines = readLog(this.log);
    return what === undefined ? lines : lines.filter((line) => line.what === what);
  }

  /**
   * The notices that a handler may have run when its process died, and how many of them are false: since the last such notice about the
   * event, no other process had called its handler.
   */
  diedWhileRunning(): { readonly notices: number; readonly falseOnes: number } {
    const callers = new Map<string, Set<number>>();
    let notices = 0;
    let falseOnes = 0;
    for (const { what, key, more, pid } of this.lines()) {
      if (what === "started") callers.set(key, (callers.get(key) ?? new Set()).add(pid));
      if (what !== "notice" || more !== "died-while-running") continue;
      notices++;
      if (![...(callers.get(key) ?? [])].some((caller) => caller !== pid)) falseOnes++;
      callers.delete(key);
    }
    return { notices, falseOnes };
  }

  /** The keys of held events. */
  async held(): Promise<ReadonlySet<string>> {
    return (await this.#kept()).held;
  }

  /** The keys of held events, and of those that a person has discarded. */
  async #kept(): Promise<{ readonly held: ReadonlySet<string>; readonly discarded: ReadonlySet<string> }> {
    const inbox = openInbox(this.inbox);
    try {
      const held = new Set<string>();
      for await (const { id, status } of eachEvent(inbox.events, { state: "held" }))
        held.add(`${id} ${status}`);
      const discarded = new Set<string>();
      for (const { key, detail: eventId } of this.lines("discards")) {
        if ((await inbox.events.get(eventId))?.state === "discarded") discarded.add(key);
      }
      return { held, discarded };
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  }

  /**
   * Waits until everything acknowledged is completed or held, or until nothing has happened any more for
   * longer than one that is not lost may rest, and counts.
   */
  async judge(
    { acknowledged }: Pick<Sender, "acknowledged">,
    { withinMs = 90_000, leaseMs = LEASE_MS }: { readonly withinMs?: number; readonly leaseMs?: number } = {},
  ): Promise<Verdict> {
    let progressAt = performance.now();
    let lastCount = -1;
    let verdict = await this.#count(acknowledged);
    await until(
      "an end of the handlers' log",
      async () => {
        verdict = await this.#count(acknowledged);
        const count = this.lines().filter(({ what }) => what !== "notice" && what !== "lag").length;
        if (count !== lastCount) progressAt = performance.now();
        lastCount = count;
        return isAtRest(verdict) || performance.now() - progressAt > leaseMs + NO_TRACE_MS;
      },
      // The log of a long run is long, too.
      { withinMs, everyMs: isLong ? 1_000 : 100 },
    ).catch((error: Error) => {
      throw new Error(
        `${error.message}; open then: ${this.#story([...verdict.lost, ...verdict.unreported])}`,
      );
    });
    return verdict;
  }

  /** The last lines of the log about each of some keys. */
  #story(keys: readonly string[]): string {
    const linesOf = (key: string): string =>
      this.lines()
        .filter((line) => line.key === key)
        .slice(-8)
        .map(({ what, detail, more, pid, at }) => `${Math.round(at)} ${pid} ${what} ${detail} ${more}`)
        .join("; ");
    return keys.length === 0 ? "nothing" : keys.map((key) => `\n${key}: ${linesOf(key)}`).join("");
  }

  async #count(acknowledged: ReadonlyMap<string, unknown>): Promise<Verdict> {
    const times = new Map<string, number>();
    for (const { key } of this.lines("completed")) times.set(key, (times.get(key) ?? 0) + 1);
    const open = [...acknowledged.keys()].filter((key) => !times.has(key));
    const { held, discarded } = open.length === 0 ? NOTHING_KEPT : await this.#kept();
    const reported = new Set(this.lines("on-held").map(({ key }) => key));
    const risked = new Set(
      this.lines("notice").flatMap(({ key, detail }) => (detail === "double-risk" ? [key] : [])),
    );
    const doubles = [...times].filter(([, count]) => count > 1).map(([key]) => key);
    return {
      acknowledged: acknowledged.size,
      completed: times.size,
      held: open.filter((key) => held.has(key)).length,
      lost: open.filter((key) => !held.has(key) && !discarded.has(key)),
      unreported: open.filter((key) => held.has(key) && !reported.has(key)),
      doubles,
      silentDoubles: doubles.filter((key) => !risked.has(key)),
    };
  }

  /** From a moment to when the first handler completed after it. */
  async firstCompletionAfter(from: number, withinMs: number): Promise<Span> {
    return until(
      "a handler completes",
      () => {
        const line = this.lines("completed").find(({ at }) => at > from);
        return line === undefined ? null : { from, to: line.at };
      },
      { withinMs },
    );
  }

  /** How long each event waited from its acknowledgement, or from a later moment, until it completed. */
  waitsSince(moment: number, { answered }: Pick<Sender, "answered">): readonly Span[] {
    const completedAt = new Map(this.lines("completed").map(({ key, at }) => [key, at]));
    return answered
      .filter(({ status }) => status === 200)
      .map(({ key, to }) => ({ from: Math.max(moment, to), to: completedAt.get(key) ?? 0 }));
  }

  /** The longest of some spans, each less the time in which the machine let the sender or a process under test wait. */
  longestMs(spans: readonly Span[], sender: Pick<Sender, "lags">): number {
    const lags = this.#lags(sender);
    return Math.max(0, ...spans.map((span) => lengthWithoutLag(span, lags)));
  }

  /** Those of some answers before which the machine kept nobody waiting: it is no excuse for what they say. */
  inQuiet(answers: readonly Answer[], sender: Pick<Sender, "lags">): readonly Answer[] {
    const lags = this.#lags(sender);
    return answers.filter(({ to }) => {
      const before = { from: to - WORST_ANSWER_MS, to };
      return WORST_ANSWER_MS - lengthWithoutLag(before, lags) < EXCUSE_MS;
    });
  }

  #lags({ lags }: Pick<Sender, "lags">): readonly Span[] {
    const ofProcesses = this.lines("lag").map(({ more, at }) => ({ from: at - Number(more), to: at }));
    return [...lags, ...ofProcesses];
  }
}
