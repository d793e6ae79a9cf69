/**
 * Events that another receiver has handled. While a merchant moves from one receiver to another, both see the same
 * deliveries. Here an event ends without a call of its handlers. So its copies are still recognised when the other
 * receiver is gone.
 */
import type { Flow, NamedEvent } from "../flows/flow.ts";
import type { Inbox, RunEnd, RunHandle, Runner } from "../inbox/contract/inbox.ts";
import type { SlotState } from "../inbox/record/event.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { factsOf } from "../inbox/record/run-input.ts";
import type { RunOutcome } from "../inbox/record/run-outcome.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import type { NoticeBoard } from "../notices/notice-board.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { isOutsideTable } from "../protocol/held-reasons.ts";
import { Stopwatch, sleep } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { checkTenant } from "./check-tenant.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Settings } from "./options.ts";

/** An event that another receiver has handled, or may have handled. */
export interface OtherReceiverEvent extends NamedEvent {
  /** As the resolver names it, or as `read` of a source does. Left out if the event belongs to no tenant. */
  readonly tenant?: string | undefined;
}

/** Options of `markHandled`. */
export interface MarkOptions {
  /**
   * False: the other receiver has taken a delivery of the event for a copy, so it is not known whether it has handled
   * the event. A waiting event is then held for a person, as `rejected`. A later call without this option discards it.
   * Default true.
   */
  readonly certain?: boolean | undefined;
}

/** The result of marking an event that another receiver has handled. */
export interface MarkResult {
  readonly eventId: string;
  /**
   * `done`, unless the event had ended otherwise, or is held. `running` or `waiting`: another process still has it, and
   * may call its handlers. Nothing was marked; call again.
   */
  readonly state: SlotState | null;
}

export interface MarkDependencies {
  readonly inbox: Inbox;
  readonly environment: Environment;
  readonly notices: NoticeBoard;
  /** If another call is ending the event, this call waits as long as a delivery would. */
  readonly settings: Pick<Settings, "acceptTimeoutMs">;
  readonly lifecycle: Pick<Lifecycle, "during">;
}

const UNMARKED_COPY_DETAIL =
  "another receiver took a delivery of it for a copy, and has not said that it handled it: look into its books, then discard or replay it";

const OTHER_RECEIVER_DECISION = { by: "the other receiver", note: "it has handled the event" } as const;
const POLL_INTERVAL_MS = 20;

/**
 * Ends an event without a call of its handlers. If the inbox does not know it, it is recorded first.
 *
 * @throws PayhooksError as `markHandled` of an endpoint.
 */
export async function markHandled(
  dependencies: MarkDependencies,
  flow: Flow,
  handledEvent: OtherReceiverEvent,
  options: MarkOptions,
): Promise<MarkResult> {
  checkNames("markHandled", options, { certain: true });
  checkFlag("certain of markHandled", options.certain);
  checkTenant(flow, handledEvent.tenant, "markHandled");
  return dependencies.lifecycle.during(() =>
    markEvent(dependencies, flow, handledEvent, options.certain ?? true),
  );
}

async function markEvent(
  { inbox, environment, notices, settings }: MarkDependencies,
  flow: Flow,
  handledEvent: OtherReceiverEvent,
  isCertain: boolean,
): Promise<MarkResult> {
  const event = flow.eventFromName(handledEvent, handledEvent.tenant ?? ONLY_TENANT, environment.now());
  if (event === null || handledEvent.id === "") throw unknownEventError(flow, handledEvent);
  const runner = runnerFor(flow, notices, isCertain);
  const time = new Stopwatch(environment);
  for (;;) {
    const { whenHandled, eventId } = await inbox.accept(event, { runAtOnce: runner });
    const state = (await whenHandled)?.state ?? null;
    const heldEvent = state === "held" && isCertain ? await inbox.events.get(eventId) : null;
    const isUnmarkedCopy = heldEvent?.reason === "rejected" && heldEvent.detail === UNMARKED_COPY_DETAIL;
    if (isUnmarkedCopy && (await inbox.events.discard([eventId], OTHER_RECEIVER_DECISION)).decided === 1) {
      return { eventId, state: "discarded" };
    }
    // A person may have decided about the doubtful event meanwhile. The next read shows how.
    const wasDecided = heldEvent !== null && (isUnmarkedCopy || heldEvent.state !== "held");
    const isBusy = wasDecided || state === "waiting" || state === "running";
    if (!isBusy || time.elapsedMs >= settings.acceptTimeoutMs) return { eventId, state };
    await sleep(environment, POLL_INTERVAL_MS);
  }
}

/** A runner that calls no handler. */
function runnerFor(flow: Flow, notices: NoticeBoard, isCertain: boolean): Runner {
  const notify = (notice: UndatedNotice): void => notices.post(notice);
  async function outcomeOf(run: RunHandle): Promise<RunOutcome> {
    const { mode, verdict, delivery } = run.input;
    // The receiver that will run events calls the onHeld handlers of a held event.
    if (mode === "onHeld" || isOutsideTable(verdict)) return { kind: "handed-back" };
    if (!isCertain) return { kind: "held", reason: "rejected", detail: UNMARKED_COPY_DETAIL, onHeld: [] };
    const { verified } = flow.read(delivery);
    const turn = verified.subject === undefined ? "acquired" : await run.takeSubject(verified);
    if (turn === "busy") return { kind: "handed-back" };
    return { kind: turn === "overtaken" ? "stale" : "done" };
  }
  return {
    async run(run): Promise<RunEnd> {
      const outcome = await outcomeOf(run);
      const postHeldNotice = (): void => {
        if (outcome.kind !== "held") return;
        const { reason, detail } = outcome;
        notify({ type: "held", ...factsOf(run.input), reason, detail });
      };
      return { outcome, changes: [], onWritten: postHeldNotice };
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify,
  };
}

function unknownEventError({ name }: Flow, { event, status }: OtherReceiverEvent): PayhooksError {
  const shownEvent = [event, status]
    .map((text) => JSON.stringify(String(text).slice(0, 40)))
    .join(" with the status ");
  return new PayhooksError(
    "ERR_OPTION_INVALID",
    `The flow ${name} has no event ${shownEvent}, or the id is empty.`,
    {
      fix: 'Give markHandled { id, event, status } as the delivery has them: { id: payTxnId, event: "DEPOSIT", status: "SUCCESS" }. Only events with statuses have one.',
    },
  );
}
