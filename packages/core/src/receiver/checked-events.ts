import type { Flow } from "../flows/flow.ts";
import type { BulkFilter, BulkOptions, EventSelection } from "../inbox/contract/bulk.ts";
import type { EventQuery } from "../inbox/contract/event-query.ts";
import type { Events } from "../inbox/contract/events.ts";
import { isMade } from "../inbox/record/decisions.ts";
import type { Decision, ReplayDecision } from "../inbox/record/life.ts";
import type { NoticeBoard } from "../notices/board.ts";
import { checkFlag, checkNames, type OptionNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { FLOWS } from "../protocol/events.ts";
import { shown } from "../protocol/foreign-value.ts";

const BULK: OptionNames<BulkOptions> = {
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
  events: Events,
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
    const progress: BulkOptions["progress"] = (one, report) => {
      if (isMade(one.outcome) && !report.dryRun) notices.post({ type, eventId: one.eventId, by, note });
      options.progress?.(one, report);
    };
    return { ...options, progress };
  }
  function checkWhich(which: EventSelection): void {
    if (isFilter(which)) checkQuery(which);
  }
  return {
    ...events,
    list: async (query = {}) => {
      checkQuery(query);
      return events.list(query);
    },
    replay: async (which, decision) => {
      checkWhich(which);
      checkReplay(decision);
      return events.replay(which, withNotices("replayed", decision.by, decision.note, decision));
    },
    retryNow: async (which, decision) => {
      checkWhich(which);
      checkNames("retryNow", decision, { by: true, note: true, ...BULK });
      return events.retryNow(which, decision);
    },
    discard: async (which, decision) => {
      checkWhich(which);
      checkNames<Decision & BulkOptions>("discard", decision, {
        by: true,
        note: true,
        revision: true,
        ...BULK,
      });
      return events.discard(which, withNotices("discarded", decision.by, decision.note, decision));
    },
    erase: async (which, decision) => {
      checkWhich(which);
      checkNames("erase", decision, { by: true, unfinished: true, ...BULK });
      checkFlag("unfinished of erase", decision.unfinished);
      const erased: string[] = [];
      const post = (name: string): void => {
        const eventIds = erased.splice(0);
        if (eventIds.length === 0) return;
        notices.post({ type: "erased", by: decision.by, name, count: eventIds.length, eventIds });
      };
      let name = "";
      const progress: BulkOptions["progress"] = (one, report) => {
        name = report.name;
        if (isMade(one.outcome) && !report.dryRun) erased.push(one.eventId);
        if (erased.length === ERASED_PER_NOTICE) post(name);
        decision.progress?.(one, report);
      };
      // Even if the call fails halfway, the notice names what was erased.
      return await events.erase(which, { ...decision, progress }).finally(() => post(name));
    },
  };
}

type BulkNotice = "replayed" | "discarded";

/** A notice is also a line of the log. */
const ERASED_PER_NOTICE = 50;

function isFilter(which: EventSelection): which is BulkFilter & EventQuery {
  return typeof which !== "string" && !Array.isArray(which);
}

/** A query for a flow that does not exist would find nothing. */
function checkFlowOf({ flow }: EventQuery, flows: ReadonlyMap<string, Flow>): void {
  if (flow === undefined || Object.hasOwn(FLOWS, flow) || flows.has(flow)) return;
  const known = [...new Set([...Object.keys(FLOWS), ...flows.keys()])].join(", ");
  throw new PayhooksError("ERR_OPTION_INVALID", `The flow of events.list is ${shown(flow)}.`, {
    fix: `It can be ${known}.`,
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
    ...BULK,
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
