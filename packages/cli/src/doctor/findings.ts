/** The faults that an endpoint can have. */
export type FaultName =
  | "unreachable"
  | "not-found"
  | "redirect"
  | "hanging"
  | "body-parser"
  | "raw-body"
  | "refuses-genuine"
  | "accepts-forged"
  | "wrong-status"
  | "server-error"
  | "fails-on-duplicates"
  | "held"
  | "slow"
  | "lenient";

/** A fault that was found. */
export interface Finding {
  readonly fault: FaultName;
  /** A warning does not change the exit code. */
  readonly severity: "error" | "warning";
  /** The names of the probes that show it. */
  readonly probes: readonly string[];
  readonly what: string;
  readonly fix: string;
}
