import type { Changes } from "../changes.ts";
import { draw } from "../draw.ts";
import { type Problem, SandboxError } from "../sandbox-error.ts";
import { FAULT_KINDS, type Fault, type FaultKind, type FaultRule, type Flow, isFaultKind } from "./kinds.ts";

/** The faults of a sandbox: the things that go wrong on purpose. */
export interface Faults {
  /**
   * Adds a fault. A kind alone happens once, to the next attempt or call that matches.
   *
   * @throws SandboxError `ERR_PARAMETERS` if the kind is unknown or a value is out of range.
   * @example sandbox.faults.add("duplicate");
   * @example sandbox.faults.add({ kind: "drop-answer", rate: 0.2 });
   */
  add(rule: FaultKind | FaultRule): Fault;
  list(): Fault[];
  /** Returns false if there is no such fault, or it is used up. */
  remove(id: string): boolean;
  clear(): void;
}

/** A delivery that a fault may happen to. */
export interface DeliveryFacts {
  readonly scope: "delivery";
  readonly flow: Flow;
  readonly event: string;
  readonly reference: string | null;
  /** False for a webhook if no secret is set: it has no signature that could be broken. */
  readonly isSigned: boolean;
  /** False once somebody has been told that the payment succeeded: then a SUCCESS would not be a forgery. */
  readonly isForgeable: boolean;
}

/** A call of the API that a fault may happen to. */
export interface CallFacts {
  readonly scope: "api";
  readonly path: string;
  readonly reference: string | null;
}

export interface FaultTaker extends Faults {
  /**
   * Returns the faults that happen to this attempt or call, and counts them. `drawKey` identifies the attempt or call.
   */
  take(facts: DeliveryFacts | CallFacts, drawKey: readonly (string | number)[]): Fault[];
}

const MAX_FAULTS = 1_000;

/** The kinds that change a signature, and so need one. */
const NEEDS_SIGNATURE: ReadonlySet<FaultKind> = new Set(["bad-signature", "wrong-key"]);

export function createFaults(seed: string, changes: Changes): FaultTaker {
  const faults = new Map<string, Fault>();
  let added = 0;

  const fits = (fault: Fault, facts: DeliveryFacts | CallFacts): boolean => {
    if (FAULT_KINDS[fault.kind].scope !== facts.scope) return false;
    if (fault.reference !== undefined && fault.reference !== facts.reference) return false;
    if (facts.scope === "api") return fault.path === undefined || facts.path.includes(fault.path);
    if (fault.flow !== undefined && fault.flow !== facts.flow) return false;
    if (fault.event !== undefined && fault.event !== facts.event) return false;
    if (fault.kind === "resplit" && !facts.isForgeable) return false;
    return facts.isSigned || !NEEDS_SIGNATURE.has(fault.kind);
  };

  return {
    add(rule) {
      const given = typeof rule === "string" ? { kind: rule } : rule;
      const problems = problemsOf(given);
      if (faults.size >= MAX_FAULTS) {
        problems.push({ field: "kind", message: `there are ${MAX_FAULTS} faults already: remove some` });
      }
      if (problems.length > 0) throw new SandboxError("ERR_PARAMETERS", explain(problems), { problems });
      added += 1;
      const remaining = given.times ?? (given.rate === undefined ? 1 : null);
      const fault: Fault = { ...given, id: `fault_${added}`, remaining, fired: 0 };
      faults.set(fault.id, fault);
      changes.publish("fault", fault.id);
      return fault;
    },
    list: () => [...faults.values()],
    remove(id) {
      const existed = faults.delete(id);
      if (existed) changes.publish("fault", id);
      return existed;
    },
    clear() {
      faults.clear();
      added = 0;
      changes.publish("fault");
    },
    take(facts, drawKey) {
      const happening = [...faults.values()].filter(
        (fault) => fits(fault, facts) && draw(seed, fault.id, fault.kind, ...drawKey) < (fault.rate ?? 1),
      );
      for (const fault of happening) {
        const remaining = fault.remaining === null ? null : fault.remaining - 1;
        if (remaining === 0) faults.delete(fault.id);
        else faults.set(fault.id, { ...fault, remaining, fired: fault.fired + 1 });
        changes.publish("fault", fault.id);
      }
      return happening;
    },
  };
}

function problemsOf(rule: FaultRule): Problem[] {
  const problems: Problem[] = [];
  const need = (isRight: boolean, field: string, message: string) => {
    if (!isRight) problems.push({ field, message });
  };
  const isDuration = (value: unknown) =>
    value === undefined || (typeof value === "number" && value >= 0 && Number.isFinite(value));
  need(isFaultKind(rule.kind), "kind", `must be one of ${Object.keys(FAULT_KINDS).join(", ")}`);
  need(
    rule.rate === undefined || (typeof rule.rate === "number" && rule.rate > 0 && rule.rate <= 1),
    "rate",
    "must be a number above 0 and at most 1",
  );
  need(
    rule.times === undefined || (Number.isSafeInteger(rule.times) && rule.times > 0),
    "times",
    "must be a whole number above 0",
  );
  need(isDuration(rule.delayMs), "delayMs", "must be milliseconds, 0 or more");
  need(isDuration(rule.ageMs), "ageMs", "must be milliseconds, 0 or more");
  return problems;
}

export function explain(problems: readonly Problem[]): string {
  return problems.map(({ field, message }) => `${field} ${message}`).join("; ");
}
