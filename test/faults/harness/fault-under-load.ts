/** Puts load on one process before, during and after a fault of its store, and checks the outcome. */
import { expect } from "vitest";
import type { InboxConfig } from "./child-config.ts";
import { testEvent } from "./events.ts";
import { ProcessUnderTest } from "./processes.ts";
import { isLong, report } from "./report.ts";
import { newSeed, pause, type Scope, sharedNow, until } from "./scope.ts";
import { type Answer, Sender } from "./sender.ts";
import { keys, SOUND, System, type Verdict, WORST_ANSWER_MS } from "./system.ts";

/** Longer than a delivery waits for a store that does not take its write. A shorter fault would not show in any answer. */
export const FAULT_MS: number = isLong ? 10_000 : 4_000;

/** How a fault of something begins and ends. */
export interface Fault<Target> {
  begin(target: Target): Promise<unknown> | unknown;
  end(target: Target): Promise<unknown> | unknown;
}

/** The outcome of a fault. */
export interface Played {
  readonly verdict: Verdict;
  readonly sender: Sender;
  /** On a machine that has nothing else to do. */
  readonly worstAnswerMs: number;
  /** From the fault's end until all that had been acknowledged was completed, on such a machine. */
  readonly backAfterMs: number;
  /** `double-risk` notices: a process that lives on has every lease, and knows every write of its own. */
  readonly risks: number;
  /** Answers while the fault was on. */
  readonly during: readonly Answer[];
  /** The refused ones among these, without those that were refused because the machine is slow. */
  readonly refusedInQuiet: readonly Answer[];
}

/** Plays a fault. The process reaches its inbox, the fault's target, as `inbox` says. */
export async function playFault<Target>(
  scope: Scope,
  name: string,
  inbox: InboxConfig,
  target: Target,
  { begin, end }: Fault<Target>,
  { leaseMs = 1_000, faultMs = FAULT_MS }: { readonly leaseMs?: number; readonly faultMs?: number } = {},
): Promise<Played> {
  const system = System.create(scope, inbox, newSeed(name));
  const config = await system.config({ handlerMs: 50, leaseMs });
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
  await begin(target);
  await pause(faultMs);
  const during = sender.answered.slice(before);
  await end(target);
  const endedAt = sharedNow();
  await acknowledges(30);
  over = true;
  await sending;
  const verdict = await system.judge(sender, { leaseMs });
  const backAfterMs = system.longestMs(system.waitsSince(endedAt, sender), sender);
  report(
    name,
    verdict,
    sender,
    `during it: ${count(during, 200)} × 200, ${count(during, 503)} × 503; all back after ${backAfterMs} ms`,
  );
  const worstAnswerMs = system.longestMs(sender.answered, sender);
  const refusedInQuiet = system.inQuiet(during, sender).filter(({ status }) => status === 503);
  const risks = system.lines("notice").filter(({ detail }) => detail === "double-risk").length;
  return { verdict, sender, worstAnswerMs, risks, backAfterMs, during, refusedInQuiet };
}

/** Nothing is lost, nothing is silently run twice, and each answer comes in time. */
export function expectSound({ verdict, sender, worstAnswerMs }: Played): void {
  expect(verdict).toMatchObject(SOUND);
  expect(verdict.acknowledged).toBeGreaterThanOrEqual(60);
  expect(worstAnswerMs).toBeLessThanOrEqual(WORST_ANSWER_MS);
  expect(sender.unanswered).toBe(0);
  expect([...sender.answers.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
}

/** How many deliveries were refused during the fault. */
export const refused = ({ during }: Played): number => count(during, 503);

function count(answers: readonly Answer[], status: number): number {
  return answers.filter((answer) => answer.status === status).length;
}
