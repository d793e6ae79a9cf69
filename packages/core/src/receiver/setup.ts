import type { Flow } from "../flows/flow.ts";
import type { Registry } from "../handlers/registry.ts";
import type { HandlersDiff } from "../inbox/contract/handler-sets.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import { PayhooksError } from "../protocol/errors.ts";

/** The facts about a receiver's set-up when it starts. */
export interface SetupFacts {
  /** True if an inbox was named. */
  readonly hasInbox: boolean;
  /** True if handlers run in another process. */
  readonly runsElsewhere: boolean;
  readonly registry: Registry;
  readonly flows: readonly Flow[];
}

/** The warning that a receiver has other handlers than the last receiver that started on the same data. */
export function differenceOf({ missing, added }: HandlersDiff): SetupWarning {
  const lists = [
    missing.length === 0 ? "" : ` Missing here: ${missing.join(", ")}.`,
    added.length === 0 ? "" : ` New here: ${added.join(", ")}.`,
  ];
  return {
    what: `The receiver that started last on this inbox had other handlers.${lists.join("")}`,
    fix: "That is fine after a change of your handlers: events that only an old process can finish are held as unhandled, so replay them. Two applications need an inbox each: another file, schema or prefix.",
  };
}

/**
 * Checks what can only be checked once the environment is available and the handlers are registered.
 *
 * @returns warnings about settings that work but should not stay.
 * @throws PayhooksError `ERR_INBOX_REQUIRED`, `ERR_NO_HANDLERS`, or the code for which a flow's keys are refused.
 */
export async function checkSetup({
  hasInbox,
  runsElsewhere,
  registry,
  flows,
}: SetupFacts): Promise<readonly SetupWarning[]> {
  if (!hasInbox && process.env.NODE_ENV === "production") {
    throw new PayhooksError("ERR_INBOX_REQUIRED", "NODE_ENV is production and no inbox is named.", {
      fix: "Choose one: postgresInbox(url), mysqlInbox(url) or redisInbox(url) for several machines, sqliteInbox(file) for one machine, or memoryInbox(), which loses acknowledged events when the process dies.",
    });
  }
  if (!runsElsewhere && registry.isEmpty) {
    throw new PayhooksError("ERR_NO_HANDLERS", "The receiver has no handler: every event would be held.", {
      fix: 'Register one, such as receiver.onDeposit(…), before the start (check that the module with your handlers is imported); or set run: "elsewhere" if another process runs them.',
    });
  }
  const warnings: SetupWarning[] = [];
  for (const flow of flows) {
    warnings.push(...(await flow.prepare()));
    if (runsElsewhere) continue;
    for (const name of registry.unhandledEvents(flow.name)) {
      warnings.push({
        what: `No handler for ${name}: such events will be held.`,
        fix: `Register one, or call receiver.ignore("${name}").`,
      });
    }
  }
  if (!hasInbox) {
    warnings.push({
      what: "No inbox is named: events live in memory and die with the process.",
      fix: "Name one for production.",
    });
  }
  return warnings;
}
