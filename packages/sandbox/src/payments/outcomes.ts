import { isDuration } from "../clock.ts";
import { SandboxError } from "../sandbox-error.ts";
import { type Medium, STATUSES, type TransactionStatus, type TransactionType } from "../wire.ts";
import { magicOutcome } from "./magic.ts";
import type { Step } from "./step.ts";

/**
 * The outcome of a transaction: one final status, or all steps on its way. A transaction starts as PENDING, without a callback.
 * An empty list leaves it PENDING.
 */
export type Outcome = TransactionStatus | readonly Step[];

/** Selects the transactions of an outcome. A member that is left out matches all of them. */
export interface ScriptMatch {
  readonly reference?: string | undefined;
  readonly phoneNumber?: string | undefined;
  readonly medium?: Medium | undefined;
  readonly event?: TransactionType | undefined;
}

export interface Script {
  readonly match: ScriptMatch;
  readonly path: readonly Step[];
}

export interface Scripts {
  add(match: ScriptMatch, outcome: Outcome): Script;
  list(): Script[];
  clear(): void;
  /**
   * The path of a transaction. The first of these that there is decides: a script for its reference, a magic reference
   * or phone number, any other script that matches, the default.
   */
  pathOf(transaction: {
    readonly reference: string;
    readonly phoneNumber: string;
    readonly medium: string;
    readonly event: TransactionType;
  }): readonly Step[];
}

const MAX_SCRIPTS = 10_000;
const MAX_STEPS = 50;

/** @param defaults the outcome in the options. It stays when {@link Scripts.clear} is called. */
export function createScripts(defaults: Outcome): Scripts {
  const fallback = toPath(defaults);
  let scripts: Script[] = [];
  return {
    add(match, outcome) {
      checkMatch(match);
      const script = { match, path: toPath(outcome) };
      scripts = [...scripts, script].slice(-MAX_SCRIPTS);
      return script;
    },
    list: () => scripts,
    clear() {
      scripts = [];
    },
    pathOf({ reference, phoneNumber, medium, event }) {
      const digits = digitsOf(phoneNumber);
      const fitting = scripts.filter(
        ({ match }) =>
          (match.reference ?? reference) === reference &&
          digitsOf(match.phoneNumber ?? digits) === digits &&
          (match.medium ?? medium) === medium &&
          (match.event ?? event) === event,
      );
      const exact = fitting.findLast(({ match }) => match.reference !== undefined);
      return exact?.path ?? magicOutcome(reference, digits)?.path ?? fitting.at(-1)?.path ?? fallback;
    },
  };
}

/** The path that an outcome stands for. Throws `ERR_PARAMETERS` if it is not an outcome. */
export function toPath(outcome: unknown): readonly Step[] {
  if (typeof outcome === "string") return toPath(outcome === "PENDING" ? [] : [{ status: outcome }]);
  const isStep = (step: Partial<Step> | null): boolean =>
    typeof step === "object" &&
    step !== null &&
    STATUSES.some((status) => status === step.status) &&
    (step.afterMs === undefined || isDuration(step.afterMs)) &&
    (step.message === undefined || typeof step.message === "string") &&
    (step.callback === undefined || typeof step.callback === "boolean");
  if (!Array.isArray(outcome) || outcome.length > MAX_STEPS || !outcome.every(isStep)) {
    const message = `must be one of ${STATUSES.join(", ")}, or up to ${MAX_STEPS} steps such as [{"status":"FAILED","afterMs":500}]`;
    throw new SandboxError("ERR_PARAMETERS", `The outcome ${message}.`, {
      problems: [{ field: "outcome", message }],
    });
  }
  return outcome;
}

function checkMatch(match: ScriptMatch): void {
  const names = ["reference", "phoneNumber", "medium", "event"];
  for (const [name, value] of Object.entries(match)) {
    if (names.includes(name) && (value === undefined || typeof value === "string")) continue;
    const message = `must hold strings named ${names.join(", ")}`;
    throw new SandboxError("ERR_PARAMETERS", `The match ${message}.`, {
      problems: [{ field: "match", message }],
    });
  }
}

const digitsOf = (phoneNumber: string): string => phoneNumber.replaceAll(" ", "");
