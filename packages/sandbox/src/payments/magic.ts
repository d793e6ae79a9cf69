import type { FaultKind } from "../faults/kinds.ts";
import type { Step } from "./step.ts";

/** The outcome of a magic reference or phone number. With these, a program needs nothing but the service's own endpoints. */
export interface MagicOutcome {
  /** It applies to references that start with `sbx-<name>`, and to phone numbers that end in `900000` and `number`. */
  readonly name: string;
  /** Three digits. */
  readonly number: string;
  readonly does: string;
  readonly path?: readonly Step[];
  /** A fault that happens once, to this transaction. */
  readonly fault?: FaultKind;
}

export const MAGIC_OUTCOMES: readonly MagicOutcome[] = [
  { name: "success", number: "001", does: "SUCCESS", path: [{ status: "SUCCESS" }] },
  { name: "failed", number: "002", does: "FAILED, with the medium's message", path: [{ status: "FAILED" }] },
  { name: "cancelled", number: "003", does: "CANCELLED, no callback", path: [{ status: "CANCELLED" }] },
  { name: "pending", number: "004", does: "stays PENDING, no callback", path: [] },
  {
    name: "progress",
    number: "005",
    does: "a PENDING callback, then SUCCESS",
    path: [{ status: "PENDING" }, { status: "SUCCESS" }],
  },
  { name: "slow", number: "006", does: "SUCCESS after 30 s", path: [{ status: "SUCCESS", afterMs: 30_000 }] },
  {
    name: "late-pending",
    number: "007",
    does: "SUCCESS, then a PENDING callback that is out of date",
    path: [{ status: "SUCCESS" }, { status: "PENDING" }],
  },
  {
    name: "conflict",
    number: "008",
    does: "SUCCESS, then FAILED: two final statuses",
    path: [{ status: "SUCCESS" }, { status: "FAILED" }],
  },
  {
    name: "lost",
    number: "009",
    does: "SUCCESS, but no callback",
    path: [{ status: "SUCCESS", callback: false }],
  },
  {
    name: "error",
    number: "010",
    does: "the call gets a 500, and the sandbox does nothing",
    fault: "api-error",
  },
  { name: "duplicate", number: "011", does: "SUCCESS, sent twice", fault: "duplicate" },
  {
    name: "bad-signature",
    number: "012",
    does: "SUCCESS, first with a bad signature",
    fault: "bad-signature",
  },
  { name: "dropped", number: "013", does: "SUCCESS, the first answer is lost", fault: "drop-answer" },
  {
    name: "forged",
    number: "014",
    does: "FAILED, then a SUCCESS forged from it",
    path: [{ status: "FAILED" }],
    fault: "resplit",
  },
];

const MAGIC_NUMBER_PREFIX = "900000";

/** The magic outcome of a reference or a phone number (digits only), if there is one. */
export function magicOutcome(reference: string, phoneDigits: string): MagicOutcome | undefined {
  const byReference = MAGIC_OUTCOMES.filter(({ name }) => {
    const start = `sbx-${name}`;
    return reference === start || reference.startsWith(`${start}-`);
  });
  return (
    byReference.sort((a, b) => b.name.length - a.name.length)[0] ??
    MAGIC_OUTCOMES.find(({ number }) => phoneDigits.endsWith(MAGIC_NUMBER_PREFIX + number))
  );
}
