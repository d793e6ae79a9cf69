/** What can be wrong with an endpoint. */
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

/** Something that the doctor found. */
export interface Finding {
  readonly fault: FaultName;
  /** A warning does not change the exit code. */
  readonly severity: "error" | "warning";
  /** The names of the probes that show it. */
  readonly probes: readonly string[];
  readonly what: string;
  readonly fix: string;
}
