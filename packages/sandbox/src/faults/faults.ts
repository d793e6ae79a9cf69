import { boundedMap } from "../bounded-map.ts";
import type { Changes } from "../changes.ts";
import { isDuration, MAX_DURATION_MS } from "../clock.ts";
import { draw } from "../draw.ts";
import { isJsonObject } from "../json.ts";
import { type Problem, SandboxError } from "../sandbox-error.ts";
import { EVENTS } from "../wire.ts";
import {
  FAULT_KINDS,
  type Fault,
  type FaultKind,
  type FaultRule,
  FLOWS,
  type Flow,
  isFaultKind,
} from "./kinds.ts";

/** The faults of a sandbox: the things that go wrong on purpose. */
export interface Faults {
  /**
   * Adds a fault. A kind alone happens once, to the next attempt or call that matches.
   *
   * @throws SandboxError `ERR_PARAMETERS` if a member is unknown or has a wrong value.
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
  /** False after the sandbox has reported to anybody that the payment succeeded: then a SUCCESS would not be a forgery. */
  readonly isForgeable: boolean;
}

/** A call of the API that a fault may happen to. */
export interface CallFacts {
  readonly scope: "api";
  readonly path: string;
  readonly reference: string | null;
}

export interface FaultRegistry extends Faults {
  /**
   * Adds a fault that happens once to the callbacks of a transaction. Such faults do not count for the limit, because
   * there are at most as many as transactions.
   */
  addForTransaction(kind: FaultKind, reference: string): void;
  /** Removes what {@link addForTransaction} has added, if it has not happened: no callback will come. */
  removeForTransaction(reference: string): void;
  /**
   * Returns the faults that happen to this attempt or call, and counts them. `drawKey` identifies the attempt, or calls
   * that are alike: each of those has a draw of its own.
   */
  fire(facts: DeliveryFacts | CallFacts, drawKey: readonly (string | number)[]): Fault[];
}

const MAX_FAULTS = 1_000;
const MAX_CALL_KINDS = 10_000;

/** The kinds that change a signature, and so need one. */
const SIGNATURE_FAULTS: ReadonlySet<FaultKind> = new Set(["bad-signature", "wrong-key"]);

export function createFaults(seed: string, changes: Changes): FaultRegistry {
  const faults = new Map<string, Fault>();
  /** How many calls there were of each kind. The oldest kinds are forgotten. */
  const calls = boundedMap<number>(MAX_CALL_KINDS, () => true);
  /** The ids of the faults of transactions, by reference. */
  const idsByReference = new Map<string, string>();
  let addedCount = 0;

  const store = (rule: FaultRule): Fault => {
    addedCount += 1;
    const remaining = rule.times ?? (rule.rate === undefined ? 1 : null);
    const fault: Fault = { ...rule, id: `fault_${addedCount}`, remaining, fired: 0 };
    faults.set(fault.id, fault);
    changes.publish("fault", fault.id);
    return fault;
  };

  const remove = (id: string): boolean => {
    const reference = faults.get(id)?.reference ?? "";
    if (idsByReference.get(reference) === id) idsByReference.delete(reference);
    const existed = faults.delete(id);
    if (existed) changes.publish("fault", id);
    return existed;
  };

  const countCall = (kind: string): number => {
    const count = (calls.get(kind) ?? 0) + 1;
    calls.set(kind, count);
    return count;
  };

  const matches = (fault: Fault, facts: DeliveryFacts | CallFacts): boolean => {
    if (FAULT_KINDS[fault.kind].scope !== facts.scope) return false;
    if (fault.reference !== undefined && fault.reference !== facts.reference) return false;
    if (facts.scope === "api") return fault.path === undefined || facts.path.includes(fault.path);
    if (fault.flow !== undefined && fault.flow !== facts.flow) return false;
    if (fault.event !== undefined && fault.event !== facts.event) return false;
    if (fault.kind === "resplit" && !facts.isForgeable) return false;
    return facts.isSigned || !SIGNATURE_FAULTS.has(fault.kind);
  };

  return {
    add(rule) {
      const faultRule = typeof rule === "string" ? { kind: rule } : rule;
      const problems = problemsOf(faultRule);
      if (faults.size - idsByReference.size >= MAX_FAULTS) {
        problems.push({ field: "kind", message: `there are ${MAX_FAULTS} faults already: remove some` });
      }
      if (problems.length > 0)
        throw new SandboxError("ERR_PARAMETERS", describeProblems(problems), { problems });
      return store(faultRule);
    },
    addForTransaction(kind, reference) {
      idsByReference.set(reference, store({ kind, reference }).id);
    },
    removeForTransaction(reference) {
      const id = idsByReference.get(reference);
      if (id !== undefined) remove(id);
    },
    list: () => [...faults.values()],
    remove,
    clear() {
      faults.clear();
      idsByReference.clear();
      calls.clear();
      addedCount = 0;
      changes.publish("fault");
    },
    fire(facts, drawKey) {
      const key = facts.scope === "api" ? [...drawKey, countCall(JSON.stringify(drawKey))] : drawKey;
      const activeFaults = [...faults.values()].filter(
        (fault) => matches(fault, facts) && draw(seed, fault.id, fault.kind, ...key) < (fault.rate ?? 1),
      );
      for (const fault of activeFaults) {
        const remaining = fault.remaining === null ? null : fault.remaining - 1;
        if (remaining === 0) {
          remove(fault.id);
          continue;
        }
        faults.set(fault.id, { ...fault, remaining, fired: fault.fired + 1 });
        changes.publish("fault", fault.id);
      }
      return activeFaults;
    },
  };
}

/** The check of each member. */
const MEMBER_CHECKS: Readonly<
  Record<keyof FaultRule, readonly [is: (value: unknown) => boolean, rule: string]>
> = {
  kind: [isFaultKind, `must be one of ${Object.keys(FAULT_KINDS).join(", ")}`],
  times: [(value) => Number.isSafeInteger(value) && Number(value) > 0, "must be a whole number above 0"],
  rate: [
    (value) => typeof value === "number" && value > 0 && value <= 1,
    "must be a number above 0 and at most 1",
  ],
  flow: [(value) => FLOWS.some((flow) => flow === value), `must be one of ${FLOWS.join(", ")}`],
  event: [(value) => EVENTS.some((event) => event === value), `must be one of ${EVENTS.join(", ")}`],
  reference: [isText, "must be a string that is not empty"],
  path: [isText, "must be a string that is not empty"],
  delayMs: [isDuration, `must be milliseconds, from 0 to ${MAX_DURATION_MS}`],
  ageMs: [isDuration, `must be milliseconds, from 0 to ${MAX_DURATION_MS}`],
  field: [isField, "must be { name, value }: two strings, and a name other than signature"],
};

function problemsOf(rule: FaultRule): Problem[] {
  const members = Object.entries({ ...rule, kind: rule.kind ?? null }).filter(
    ([, value]) => value !== undefined,
  );
  return members.flatMap(([field, value]): Problem[] => {
    if (!Object.hasOwn(MEMBER_CHECKS, field)) {
      return [
        { field, message: `is not a member of a fault: those are ${Object.keys(MEMBER_CHECKS).join(", ")}` },
      ];
    }
    const [isValid, message] = MEMBER_CHECKS[field as keyof FaultRule];
    return isValid(value) ? [] : [{ field, message }];
  });
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isField(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { name, value: text, ...rest } = value;
  return isText(name) && name !== "signature" && typeof text === "string" && Object.keys(rest).length === 0;
}

export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(({ field, message }) => `${field} ${message}`).join("; ");
}
