import type { EffectContext, HandlerContext, HandlerOptions, Receiver } from "@payhooks/core";
import type { HandlerCall } from "./chronicle.ts";
import type { Core } from "./core.ts";
import type { SimulatedTransaction } from "./database.ts";
import type { Owner } from "./timeline.ts";
import { type FaultTarget, storeNow, type World } from "./world.ts";
import { recordOf } from "./written.ts";

/** The process that a merchant's handlers run in. */
export interface MerchantProcess extends FaultTarget, Owner {
  readonly number: number;
  /** The version of the merchant that is deployed in it. */
  readonly handlerSet: number;
}

/** A handler, as each version of the merchant has it. */
interface HandlerPlan {
  readonly event: "DEPOSIT" | "WITHDRAWAL" | "approved" | "declined" | "settled" | "refused" | "held";
  readonly name: string;
  readonly maxAttempts?: number;
  readonly onCrash?: "hold";
}

const EVERY_VERSION: readonly HandlerPlan[] = [
  { event: "DEPOSIT", name: "credit" },
  { event: "WITHDRAWAL", name: "settle" },
  { event: "approved", name: "activate" },
  { event: "settled", name: "book", onCrash: "hold" },
  { event: "held", name: "page" },
];

/** Further handlers, by the merchant's version. A deploy mixes the versions. */
const VERSIONS: readonly [readonly HandlerPlan[], ...(readonly HandlerPlan[])[]] = [
  [
    { event: "DEPOSIT", name: "thank" },
    { event: "approved", name: "greet", maxAttempts: 1 },
  ],
  [
    { event: "DEPOSIT", name: "thank" },
    { event: "DEPOSIT", name: "report" },
    { event: "refused", name: "undo" },
  ],
];

export const HANDLER_SETS: number = VERSIONS.length;
export const MAX_ATTEMPTS = 3;

/** The names of the handlers that a version of the merchant has for an event and status. */
export function handlersFor(handlerSet: number, name: string, status: string): readonly HandlerPlan[] {
  if (status === "FAILED" && name === "WITHDRAWAL") return [];
  const event = EVENTS[name];
  return plansOf(handlerSet).filter((plan) => plan.event === event);
}

const EVENTS: Readonly<Record<string, HandlerPlan["event"]>> = {
  DEPOSIT: "DEPOSIT",
  WITHDRAWAL: "WITHDRAWAL",
  "connected_account.approved": "approved",
  "connected_account.declined": "declined",
  "settlement.approved": "settled",
  "settlement.declined": "refused",
};

/** A handler that must not run twice. */
export function isHeldOnCrash(handler: string): boolean {
  return EVERY_VERSION.some(({ name, onCrash }) => name === handler && onCrash === "hold");
}

/** A handler whose effect happens in the merchant's database, where there is one. */
export function isBooking(handler: string): boolean {
  return handler === "credit" || handler === "settle";
}

function plansOf(handlerSet: number): readonly HandlerPlan[] {
  return [...EVERY_VERSION, ...(VERSIONS[handlerSet] ?? VERSIONS[0])];
}

/** Registers the handlers of a process. The dice decide how long each call takes and how it ends. */
export function register(world: World, core: Core, process: MerchantProcess, receiver: Receiver): void {
  const { leaseMs } = world.plan;
  receiver.ignore("connected_account.declined");
  for (const { event, name, maxAttempts = MAX_ATTEMPTS, onCrash = "rerun" } of plansOf(process.handlerSet)) {
    const handle = (_: unknown, context: HandlerContext): unknown =>
      call(world, core, process, name, event === "held", context);
    const options: HandlerOptions = {
      name,
      maxAttempts,
      onCrash,
      timeoutMs: leaseMs * 3,
      backoffMs: (attempt) => 80 * attempt,
    };
    switch (event) {
      case "DEPOSIT":
        receiver.onDeposit({ PENDING: handle, SUCCESS: handle, FAILED: handle }, options);
        break;
      case "WITHDRAWAL":
        receiver.onWithdrawal({ PENDING: handle, SUCCESS: handle }, options);
        break;
      case "approved":
        receiver.onConnectedAccountApproved(handle, options);
        break;
      case "settled":
        receiver.onSettlementApproved(handle, options);
        break;
      case "refused":
        receiver.onSettlementDeclined(handle, options);
        break;
      case "held":
        receiver.onHeld(handle, options);
        break;
    }
  }
}

type End = NonNullable<HandlerCall["end"]>;

function call(
  world: World,
  core: Core,
  process: MerchantProcess,
  handler: string,
  isOnHeld: boolean,
  context: HandlerContext,
): unknown {
  const { eventId, effectId, attempt, signal } = context;
  const { chronicle, dice, timeline, plan } = world;
  if (!process.isAlive) return new Promise(() => {});
  const key = eventId.slice(0, 32);
  const lastBegin = chronicle.writes.findLast(
    (write) => write.key === key && write.process === process.name && beginIn(write) !== null,
  );
  const made: HandlerCall = {
    process: process.name,
    key,
    eventId,
    handler,
    effectId,
    attempt,
    isOnHeld,
    token: lastBegin === undefined ? null : beginIn(lastBegin),
    leaseThen: recordOf(world, key)?.lease?.token ?? null,
    from: Math.max(timeline.now, process.frozenUntil),
    now: storeNow(world),
    to: null,
    end: null,
    timedOut: false,
  };
  chronicle.calls.push(made);
  const number = world.count(`call ${effectId}`);
  const purpose = `call ${effectId}`;
  chronicle.log(
    timeline.now,
    process.name,
    () => `calls ${handler} of ${eventId.slice(0, 6)} ${eventId.slice(32, 36)}`,
  );
  const callFault = world.meet("handler", "before", process);
  const forMs = callFault === "late" ? plan.leaseMs * 4 : durationOf(world, purpose, number);
  const end: End =
    callFault === "not-made"
      ? "threw"
      : endOf(world, dice.roll(`${purpose} end`, number), callFault === "answer-lost");
  const finish = (): unknown => {
    // From now on the handler has had its effect, even if the process dies.
    made.to = Math.max(timeline.now, process.frozenUntil);
    made.end = end;
    world.meet("handler", "after", process);
    if (!process.isAlive) return new Promise(() => {});
    made.to = Math.max(timeline.now, process.frozenUntil);
    chronicle.log(timeline.now, process.name, () => `${handler} of ${eventId.slice(0, 6)} ${end}`);
    if (end === "rejected") throw new core.Reject("the simulated merchant does not want it");
    if (end === "threw")
      throw dice.chance(0.3, `${purpose} after`, number) ? new core.RetryAfter(150) : FAILURE;
    return undefined;
  };
  signal.addEventListener("abort", () => {
    made.timedOut ||= String(signal.reason).includes("timed out");
  });
  if (!process.isAlive) return new Promise(() => {});
  if (plan.hasEffects && isBooking(handler)) {
    return book(world, process, context as EffectContext<SimulatedTransaction>, { number, forMs }).then(
      finish,
      (error) => {
        made.to = Math.max(timeline.now, process.frozenUntil);
        made.end = "threw";
        throw error;
      },
    );
  }
  if (forMs === 0) return finish();
  return new Promise((resolve, reject) => {
    timeline.at(Math.max(timeline.now, process.frozenUntil) + forMs, process, () => {
      try {
        resolve(finish());
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** Books the event. Some of these handlers are careless: they go on after a statement that failed. */
async function book(
  { timeline, dice }: World,
  process: MerchantProcess,
  context: EffectContext<SimulatedTransaction>,
  { number, forMs }: { readonly number: number; readonly forMs: number },
): Promise<void> {
  const passes = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      timeline.at(Math.max(timeline.now, process.frozenUntil) + ms, process, resolve);
    });
  await passes(forMs / 2);
  await context.transaction(async (tx) => {
    const booked = tx.book(context.effectId);
    await (dice.chance(0.5, `careless ${context.effectId}`, number) ? booked.catch(() => {}) : booked);
    await passes(forMs / 2);
  });
}

/** Made once, since making an error takes longer than the rest of a call. */
const FAILURE = new Error("the simulated merchant's handler failed");

function beginIn({ before, after }: { readonly before: unknown; readonly after: unknown }): string | null {
  const [recordBefore, recordAfter] = [before, after] as readonly ({
    readonly lease: { readonly token: string } | null;
  } | null)[];
  const token = recordAfter?.lease?.token ?? null;
  return token !== null && token !== recordBefore?.lease?.token ? token : null;
}

function durationOf({ dice, plan }: World, purpose: string, number: number): number {
  const roll = dice.roll(`${purpose} time`, number);
  if (roll < 0.4) return 0;
  if (roll < 0.75) return 1 + roll * 10;
  if (roll < 0.95) return 150 * roll;
  return plan.leaseMs * (0.4 + roll);
}

function endOf({ plan }: World, roll: number, isSureToThrow: boolean): End {
  if (isSureToThrow || roll < 0.1) return "threw";
  // A rejected event is held, and its claim stands as long as it is held.
  return roll < (plan.sharesReferences ? 0.2 : 0.13) ? "rejected" : "done";
}
