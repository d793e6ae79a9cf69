/**
 * Random deliveries by parallel clients, held against the reference model of the table. A delivery is two steps, claim
 * and flag, and those of one round may come in any order: what the inbox answered must be what the model answers in one
 * of these orders, and what came before must be in keeping with it.
 */
import { composeInbox } from "@payhooks/core/inbox";
import { seededRandom } from "../faults/harness/scope.ts";
import { type ModelAnswer, type ModelDelivery, ReferenceModel } from "./reference-model.ts";
import type { Ground } from "./rig.ts";
import { newId, sampleEvent, sampleRunner, slotNameOf } from "./sample-events.ts";

const CLIENTS = 3;
const AT_ONCE = 3;

/** One delivery of a round: `completes` is false for a process that died after the claim. */
interface Command {
  readonly delivery: ModelDelivery;
  readonly completes: boolean;
}

type Answer = Pick<ModelAnswer, "outcome" | "reason" | "slot">;

/** A step of one command of one round. */
interface Step {
  readonly command: Command;
  readonly index: number;
  readonly kind: "claim" | "flag";
}

type History = readonly Step[];

/** Plays so many transactions of so many rounds. Throws when no order explains what was answered. */
export async function playModel(
  ground: Ground,
  {
    seed,
    transactions,
    rounds,
  }: { readonly seed: number; readonly transactions: number; readonly rounds: number },
): Promise<{ readonly commands: number; readonly orders: number }> {
  const random = seededRandom(seed);
  const pick = <T>(...choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(random() * choices.length)] ?? choices[0];
  const { durability, leaseMs, clock } = ground;
  const clients = Array.from({ length: CLIENTS }, () => {
    const parts = ground.open();
    return { ...parts, inbox: composeInbox({ ...parts, durability, leaseMs, clock }) };
  });
  const client = (): (typeof clients)[number] => {
    const [first] = clients;
    const chosen = clients[Math.floor(random() * clients.length)] ?? first;
    if (chosen === undefined) throw new Error("there are clients");
    return chosen;
  };
  const runner = sampleRunner();
  let commands = 0;
  let orders = 0;

  for (let transaction = 0; transaction < transactions; transaction++) {
    const id = newId();
    let histories: readonly History[] = [[]];
    for (let round = 0; round < rounds; round++) {
      const given = Array.from(
        { length: 1 + Math.floor(random() * AT_ONCE) },
        (): Command => ({
          delivery: {
            status: pick("PENDING", "PENDING", "SUCCESS", "FAILED"),
            listed: true,
            identity: { referenceId: pick("o-1", "o-1", "o-1", "o-1", "o-2") },
            amount: pick("10", "10", "10", "11"),
            source: "callback",
          },
          completes: random() < 0.7,
        }),
      );
      commands += given.length;
      const answers = await Promise.all(
        given.map(async ({ delivery, completes }): Promise<Answer> => {
          const { inbox, store } = client();
          const event = sampleEvent(id, clock.now(), delivery);
          const accepted = completes
            ? await inbox.accept(event)
            : await store.accept(event, { maxHeld: Number.POSITIVE_INFINITY, delayMs: 0 });
          const { outcome, reason, job } = accepted;
          if (outcome === "expired") throw new Error("nothing is old here");
          return { outcome, reason: reason as Answer["reason"], slot: slotNameOf(job.eventId) };
        }),
      );
      const found = explain(histories, given, answers);
      if (found.length === 0) {
        throw new Error(
          `seed ${seed}, transaction ${transaction}, round ${round}: no order of ${JSON.stringify(given)} explains ${JSON.stringify(answers)}`,
        );
      }
      histories = found;
      orders += found.length;
      if (random() < 0.3)
        await client().inbox.work(runner, { deadlineMs: 5_000, limit: 100, concurrency: 1 });
    }
  }
  for (const { inbox } of clients) await inbox.close({ graceMs: 0 });
  return { commands, orders };
}

/** Histories, each with one order of this round's steps, after which the model has answered the same. */
function explain(
  histories: readonly History[],
  given: readonly Command[],
  answers: readonly Answer[],
): readonly History[] {
  const found = new Map<string, History>();
  for (const history of histories) {
    for (const order of ordersOf(given)) {
      const longer = [...history, ...order];
      const model = new ReferenceModel();
      const got = replay(model, longer, history.length);
      if (!answers.every((answer, index) => isSame(answer, got.get(index)))) continue;
      // Orders that left the same behind need not be followed apart.
      const left = JSON.stringify([[...model.slots], longer.filter(({ kind }) => kind === "claim").length]);
      if (!found.has(left)) found.set(left, longer);
    }
  }
  return [...found.values()];
}

/** Plays a history, and tells what the claims from `from` on were answered. */
function replay(model: ReferenceModel, history: History, from: number): ReadonlyMap<number, ModelAnswer> {
  const answers = new Map<number, ModelAnswer>();
  const claims = new Map<Command, ModelAnswer>();
  history.forEach(({ command, index, kind }, at) => {
    if (kind === "claim") {
      const answer = model.deliver(command.delivery, false);
      claims.set(command, answer);
      if (at >= from) answers.set(index, answer);
      return;
    }
    const answer = claims.get(command);
    const slot = answer === undefined ? undefined : model.slots.get(answer.slot);
    if (slot !== undefined && answer?.outcome !== "stale") slot.acknowledged = true;
  });
  return answers;
}

function isSame(answer: Answer, model: ModelAnswer | undefined): boolean {
  if (model === undefined || answer.outcome !== model.outcome || answer.slot !== model.slot) return false;
  // A copy of a held slot tells why; the model tells it for all of them.
  return answer.outcome === "stale" || answer.reason === model.reason;
}

/** All orders of the steps in which no command is flagged before it is claimed. */
function ordersOf(given: readonly Command[]): readonly History[] {
  const chains = given.map((command, index): readonly Step[] => {
    const claim: Step = { command, index, kind: "claim" };
    return command.completes ? [claim, { command, index, kind: "flag" }] : [claim];
  });
  const orders: History[] = [];
  const extend = (done: readonly Step[], positions: readonly number[]): void => {
    let ended = true;
    for (const [chain, steps] of chains.entries()) {
      const step = steps[positions[chain] ?? 0];
      if (step === undefined) continue;
      ended = false;
      extend(
        [...done, step],
        positions.map((position, other) => (other === chain ? position + 1 : position)),
      );
    }
    if (ended) orders.push(done);
  };
  extend(
    [],
    chains.map(() => 0),
  );
  return orders;
}
