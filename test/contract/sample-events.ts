import type { EventQuery, StoredEvent } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import type { Inbox } from "@payhooks/core/inbox";
import type { RunEnd, RunHandle, Runner } from "../../packages/core/src/inbox/contract/inbox.ts";
import type { AcceptOutcome, VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";
import type { HandlerChange } from "../../packages/core/src/inbox/record/handler-state.ts";
import type { RunOutcome } from "../../packages/core/src/inbox/record/run-outcome.ts";
import type { ModelDelivery } from "./reference-model.ts";

const DAY_MS = 86_400_000;
export const RETENTION_MS: number = 8 * DAY_MS;

/** The changes to a sample event. */
export interface Sample extends Partial<ModelDelivery> {
  readonly flow?: "payments" | "connect";
  readonly signedAt?: number | null;
  readonly isWithinWindow?: boolean;
  readonly tenant?: string;
  readonly verdict?: VerifiedEvent["verdict"];
  readonly referenceKey?: string | null;
}

/** Slot names as hex, the same for the same name. */
const slotNames = new Map<string, string>();
const slotsByHex = new Map<string, string>();
function slotHex(name: string): string {
  let hex = slotNames.get(name);
  if (hex === undefined) {
    hex = (slotNames.size + 1).toString(16).padStart(16, "0");
    slotNames.set(name, hex);
    slotsByHex.set(hex, name);
  }
  return hex;
}

/** The model's name of the slot in an eventId. */
export function slotNameOf(eventId: string): string {
  return slotsByHex.get(eventId.slice(32)) ?? "";
}

let ids = 0;
/** A new record's number. */
export function newId(): number {
  return ++ids;
}

const body = new TextEncoder().encode("{}");

/** A verified event as a flow would make it, without signatures: they are not the inbox's business. */
export function sampleEvent(id: number, now: number, sample: Sample = {}): VerifiedEvent {
  const {
    flow = "payments",
    status = "SUCCESS",
    listed = true,
    amount = "10",
    arrivedBy = "callback",
  } = sample;
  const { fixedFacts = { referenceId: "o-1" }, signedAt = now, isWithinWindow = true, tenant = "" } = sample;
  const verdict = sample.verdict ?? (listed ? "run" : "unrecognized");
  const entry = verdict === "ambiguous" || verdict === "malformed" || verdict === "unexpected";
  return {
    key: id.toString(16).padStart(32, "0"),
    slot: slotHex(status),
    variantSlot: () => slotHex(JSON.stringify([status, Object.entries(fixedFacts).sort(), amount])),
    id: `tx-${id}`,
    name: flow === "payments" ? "DEPOSIT" : "settlement.approved",
    status,
    rank: !listed || entry ? null : status === "PENDING" ? 0 : 1,
    fixedFacts,
    amount,
    signedAt,
    isWithinWindow,
    retentionMs: RETENTION_MS,
    verdict,
    detail: verdict === "run" ? null : "as sampled",
    referenceKey: sample.referenceKey ?? null,
    referenceId: entry ? null : (fixedFacts.referenceId ?? null),
    delivery: {
      flow,
      tenant,
      arrivedBy: arrivedBy as "callback" | "lookup" | "webhook",
      content: body,
      signature: null,
      keyId: "key-1",
      receivedAt: now,
    },
  };
}

/** A runner that does at each run what it is told, and remembers what ran. */
export interface SampleRunner extends Runner {
  /** Slots in the order of their runs, by the model's name; those of onHeld handlers begin with `onHeld `. */
  readonly ran: string[];
  readonly runs: RunHandle[];
  readonly notices: Parameters<Runner["notify"]>[0][];
}

export function sampleRunner(
  outcomeOf: (run: RunHandle) => Promise<RunOutcome | RunEnd> | RunOutcome | RunEnd = () => ({
    kind: "done",
  }),
): SampleRunner {
  const ran: string[] = [];
  const runs: RunHandle[] = [];
  const notices: Parameters<Runner["notify"]>[0][] = [];
  return {
    ran,
    runs,
    notices,
    async run(run) {
      const name = slotNameOf(run.input.eventId);
      ran.push(run.input.mode === "onHeld" ? `onHeld ${name}` : name);
      runs.push(run);
      const result = run.input.mode === "onHeld" ? ({ kind: "stays-held" } as const) : await outcomeOf(run);
      return "outcome" in result ? result : endOf(result);
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: (notice) => notices.push(notice),
  };
}

/** The end of a run, with what its last handlers have come to. */
export function endOf(outcome: RunOutcome, changes: readonly HandlerChange[] = []): RunEnd {
  return { outcome, changes, onWritten: () => {} };
}

/** Marks the handler `deposit` as started, and as called. False: the lease is lost. */
export async function startHandler(run: RunHandle): Promise<boolean> {
  const attempt = (run.input.handlerStates.deposit?.attempts ?? 0) + 1;
  const isStarted = await run.write([{ name: "deposit", kind: "started", attempt }]);
  if (isStarted) run.noteCall();
  return isStarted;
}

/** Writes that the handler `deposit` is done. False: the lease is lost. */
export async function finishHandler(run: RunHandle): Promise<boolean> {
  const attempt = (run.input.handlerStates.deposit?.attempts ?? 0) + 1;
  return run.write([{ name: "deposit", kind: "done", attempt }]);
}

/** Works off everything that is due. */
export function workAll(inbox: Inbox, runner: Runner): ReturnType<Inbox["work"]> {
  return inbox.work(runner, {
    deadlineMs: 3_600_000,
    limit: Number.POSITIVE_INFINITY,
    concurrency: 1,
  });
}

/** Accepts events one after another and says what became of each. */
export async function outcomes(inbox: Inbox, events: readonly VerifiedEvent[]): Promise<AcceptOutcome[]> {
  const list: AcceptOutcome[] = [];
  for (const event of events) list.push((await inbox.accept(event)).outcome);
  return list;
}

/** Everything that is held. */
export async function heldOf(
  { events }: Pick<Inbox, "events">,
  query: EventQuery = {},
): Promise<readonly StoredEvent[]> {
  const list: StoredEvent[] = [];
  for await (const event of eachEvent(events, { ...query, state: "held" })) list.push(event);
  return list;
}
