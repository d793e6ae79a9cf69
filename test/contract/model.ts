/**
 * Random deliveries by parallel clients, held against the reference model of the table. A delivery is one step, and those
 * of one round may come in any order: what the inbox answered must be what the model answers in one of these orders, and
 * what came before must be in keeping with it.
 */
import { createInbox } from "@payhooks/core/inbox";
import { seededRandom } from "../faults/harness/scope.ts";
import type { InboxFixture } from "./inbox-processes.ts";
import { type ModelAnswer, type ModelDelivery, ReferenceModel } from "./reference-model.ts";
import { newId, sampleEvent, sampleRunner, slotNameOf, workAll } from "./sample-events.ts";

const CLIENTS = 3;
const AT_ONCE = 3;

type Answer = Pick<ModelAnswer, "outcome" | "reason" | "slot">;

/** The steps of a record, in one order that explains the answers; null: everything that waited was run. */
type History = readonly (ModelDelivery | null)[];

/** Plays so many transactions of so many rounds. Throws when no order explains what was answered. */
export async function playModel(
  fixture: InboxFixture,
  {
    seed,
    transactions,
    rounds,
  }: { readonly seed: number; readonly transactions: number; readonly rounds: number },
): Promise<{ readonly commands: number; readonly orders: number }> {
  const random = seededRandom(seed);
  const pick = <T>(...choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(random() * choices.length)] ?? choices[0];
  const { leaseMs, clock } = fixture;
  const newClient = () => createInbox(fixture.open().store, { leaseMs, clock });
  const clients = [newClient(), ...Array.from({ length: CLIENTS - 1 }, newClient)] as const;
  const runner = sampleRunner();
  let commands = 0;
  let orders = 0;

  for (let transaction = 0; transaction < transactions; transaction++) {
    const id = newId();
    let histories: readonly History[] = [[]];
    for (let round = 0; round < rounds; round++) {
      const given = Array.from(
        { length: 1 + Math.floor(random() * AT_ONCE) },
        (): ModelDelivery => ({
          status: pick("PENDING", "PENDING", "SUCCESS", "FAILED"),
          listed: true,
          fixedFacts: { referenceId: pick("o-1", "o-1", "o-1", "o-1", "o-2") },
          amount: pick("10", "10", "10", "11"),
          arrivedBy: "callback",
        }),
      );
      commands += given.length;
      const answers = await Promise.all(
        given.map(async (delivery): Promise<Answer> => {
          const accepted = await pick(...clients).accept(sampleEvent(id, clock.now(), delivery));
          const { outcome, reason, eventId } = accepted;
          if (outcome === "expired") throw new Error("nothing is old here");
          return { outcome, reason: reason as Answer["reason"], slot: slotNameOf(eventId) };
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
      if (random() < 0.3) {
        await workAll(pick(...clients), runner);
        histories = histories.map((history) => [...history, null]);
      }
    }
  }
  for (const client of clients) await client.close({ graceMs: 0 });
  return { commands, orders };
}

/** Histories, each with one order of this round's deliveries, after which the model has answered the same. */
function explain(
  histories: readonly History[],
  given: readonly ModelDelivery[],
  answers: readonly Answer[],
): readonly History[] {
  const found = new Map<string, History>();
  for (const history of histories) {
    for (const order of ordersOf(given.map((_, index) => index))) {
      const model = new ReferenceModel();
      for (const step of history) {
        if (step === null) model.run();
        else model.deliver(step);
      }
      const explains = order.every((index) => {
        const [delivery, answer] = [given[index], answers[index]];
        return delivery !== undefined && answer !== undefined && isSame(answer, model.deliver(delivery));
      });
      if (!explains) continue;
      // Orders that left the same behind need not be followed apart.
      const left = JSON.stringify([...model.slots]);
      if (!found.has(left)) found.set(left, [...history, ...order.map((index) => given[index] ?? null)]);
    }
  }
  return [...found.values()];
}

function isSame(answer: Answer, model: ModelAnswer): boolean {
  return answer.outcome === model.outcome && answer.slot === model.slot && answer.reason === model.reason;
}

function ordersOf(indexes: readonly number[]): readonly (readonly number[])[] {
  if (indexes.length === 0) return [[]];
  return indexes.flatMap((first) =>
    ordersOf(indexes.filter((index) => index !== first)).map((rest) => [first, ...rest]),
  );
}
