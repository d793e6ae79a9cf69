import type { Flow } from "../flows/flow.ts";
import type { BulkFilter, BulkOptions, EventSelection } from "../inbox/contract/bulk.ts";
import type { EventQuery } from "../inbox/contract/event-query.ts";
import type { Events, InboxEvents } from "../inbox/contract/events.ts";
import { isMade } from "../inbox/record/decisions.ts";
import type { Decision, ReplayDecision } from "../inbox/record/stored-event.ts";
import type { NoticeBoard } from "../notices/notice-board.ts";
import { checkFlag, checkNames, type OptionNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { FLOWS } from "../protocol/events.ts";
import { describeValue } from "../protocol/foreign-value.ts";

const BULK_OPTION_NAMES: OptionNames<BulkOptions> = {
  dryRun: true,
  perSecond: true,
  name: true,
  signal: true,
  progress: true,
};

/**
 * The events of an inbox, as a receiver offers them: it checks each query and decision first, and posts a notice of each
 * decision.
 */
export function checkedEvents(
  events: InboxEvents,
  notices: NoticeBoard,
  flows: ReadonlyMap<string, Flow>,
): Events {
  const checkQuery = (query: EventQuery): void => {
    checkFlowOf(query, flows);
    checkTenantOf(query, flows);
  };
  /** Options with a `progress` that also posts a notice of each decision. */
  function withNotices<Options extends BulkOptions>(
    type: BulkNotice,
    by: string,
    note: string,
    options: Options,
  ): Options {
    const progress: BulkOptions["progress"] = (item, report) => {
      if (isMade(item.outcome) && !report.dryRun) notices.post({ type, eventId: item.eventId, by, note });
      options.progress?.(item, report);
    };
    return { ...options, progress };
  }
  function checkSelection(selection: EventSelection): void {
    if (isFilter(selection)) checkQuery(selection);
  }
  return {
    ...events,
    list: async (query = {}) => {
      checkQuery(query);
      return events.list(query, namesOf(flows));
    },
    replay: async (selection, decision) => {
      checkSelection(selection);
      checkReplay(decision);
      return events.replay(selection, withNotices("replayed", decision.by, decision.note, decision));
    },
    retryNow: async (selection, decision) => {
      checkSelection(selection);
      checkNames("retryNow", decision, { by: true, note: true, ...BULK_OPTION_NAMES });
      return events.retryNow(selection, decision);
    },
    discard: async (selection, decision) => {
      checkSelection(selection);
      checkNames<Decision & BulkOptions>("discard", decision, {
        by: true,
        note: true,
        revision: true,
        ...BULK_OPTION_NAMES,
      });
      return events.discard(selection, withNotices("discarded", decision.by, decision.note, decision));
    },
    erase: async (selection, decision) => {
      checkSelection(selection);
      checkNames("erase", decision, { by: true, unfinished: true, ...BULK_OPTION_NAMES });
      checkFlag("unfinished of erase", decision.unfinished);
      const erasedIds: string[] = [];
      const post = (name: string): void => {
        const eventIds = erasedIds.splice(0);
        if (eventIds.length === 0) return;
        notices.post({ type: "erased", by: decision.by, name, count: eventIds.length, eventIds });
      };
      let name = "";
      const progress: BulkOptions["progress"] = (item, report) => {
        name = report.name;
        if (isMade(item.outcome) && !report.dryRun) erasedIds.push(item.eventId);
        if (erasedIds.length === ERASED_PER_NOTICE) post(name);
        decision.progress?.(item, report);
      };
      // Even if the call fails halfway, the notice names what was erased.
      return await events.erase(selection, { ...decision, progress }).finally(() => post(name));
    },
  };
}

type BulkNotice = "replayed" | "discarded";

/** A notice is also a line of the log. */
const ERASED_PER_NOTICE = 50;

function isFilter(selection: EventSelection): selection is BulkFilter & EventQuery {
  return typeof selection !== "string" && !Array.isArray(selection);
}

/** The flows of the service, and those of this receiver. */
function namesOf(flows: ReadonlyMap<string, Flow>): readonly string[] {
  return [...new Set([...Object.keys(FLOWS), ...flows.keys()])];
}

/** A query for a flow that does not exist would find nothing. */
function checkFlowOf({ flow }: EventQuery, flows: ReadonlyMap<string, Flow>): void {
  if (flow === undefined || Object.hasOwn(FLOWS, flow) || flows.has(flow)) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `The flow of events.list is ${describeValue(flow)}.`, {
    fix: `It can be ${namesOf(flows).join(", ")}.`,
  });
}

/** Ids and references belong to a tenant. A query without a tenant would find nothing, and that would look like an answer. */
function checkTenantOf(
  { id, referenceId, tenant, flow }: EventQuery,
  flows: ReadonlyMap<string, Flow>,
): void {
  if ((id === undefined && referenceId === undefined) || tenant) return;
  const searched = [...flows.values()].filter(({ name }) => flow === undefined || name === flow);
  if (!searched.some(({ hasTenants }) => hasTenants)) return;
  throw new PayhooksError(
    "ERR_OPTION_MISSING",
    "events.list was given an id or a reference without a tenant, but a resolver chooses the keys.",
    {
      fix: "Pass { tenant } as the resolver names it for this merchant. If it chooses the keys of one flow only, { flow } names the other.",
    },
  );
}

/** Only named handlers may repeat their effects. Another handler may have made only half of its effects so far. */
function checkReplay(decision: ReplayDecision & BulkOptions): void {
  checkNames<ReplayDecision & BulkOptions>("replay", decision, {
    by: true,
    note: true,
    revision: true,
    handlers: true,
    evenIfExpired: true,
    repeatEffects: true,
    ...BULK_OPTION_NAMES,
  });
  const { repeatEffects, evenIfExpired, handlers } = decision;
  checkFlag("repeatEffects of replay", repeatEffects);
  checkFlag("evenIfExpired of replay", evenIfExpired);
  const isList = Array.isArray(handlers) && handlers.length > 0;
  if (handlers !== undefined && !(isList && handlers.every((name) => typeof name === "string"))) {
    throw new PayhooksError("ERR_OPTION_INVALID", "The handlers of a replay are not a list of names.", {
      fix: "Name at least one handler. For all handlers, leave `handlers` out.",
    });
  }
  if (repeatEffects !== true || handlers !== undefined) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "A replay was given `repeatEffects` but no handlers.", {
    fix: 'Name the handlers whose effects are to happen again: { repeatEffects: true, handlers: ["deposit"] }.',
  });
}
