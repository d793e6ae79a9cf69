/** The kinds of incidents. */
export type IncidentKind =
  | "overdue"
  | "held"
  | "stalled"
  | "all-failing"
  | "probing"
  | "held-full"
  | "refused"
  | "data-lost"
  | "keys-unreadable"
  | "test";

/** A message about an incident, for a person. It never has a value of a delivery, a key or a secret in it. */
export interface AlertMessage {
  /**
   * `going-on`: it still lasts, or has become worse. `test`: a person asked for a test message, and nothing is wrong.
   */
  readonly what: "opened" | "going-on" | "ended" | "test";
  /** Identifies this message. Each attempt to send it has this id, and no other message has it. */
  readonly id: string;
  /** Identifies the incident in every process. All messages about it have this text, and those of a later one of its kind. */
  readonly incident: string;
  readonly kind: IncidentKind;
  readonly severity: "critical" | "warning" | "info";
  /** The fault, in one sentence. */
  readonly summary: string;
  /** How to fix it, in words. */
  readonly advice: string;
  /** The application that sends this: the option `from`. */
  readonly from: string;
  /** When the incident began, and when this message was made, in milliseconds since the epoch. */
  readonly since: number;
  readonly at: number;
}

/** How bad each kind is, and what to do about it. */
export const KINDS: Readonly<
  Record<IncidentKind, { readonly severity: AlertMessage["severity"]; readonly advice: string }>
> = {
  overdue: {
    severity: "critical",
    advice:
      "See whether processes run events, and whether handlers are slow: receiver.health(), payhooks events --count.",
  },
  held: {
    severity: "warning",
    advice:
      "Look at them in the console or with payhooks events --state held. payhooks explain says what to do about each.",
  },
  stalled: {
    severity: "critical",
    advice:
      "See whether the inbox's database works for this application: receiver.health() and the log say more.",
  },
  "all-failing": {
    severity: "critical",
    advice:
      "Compare the key with the service's dashboard. The service repeats its deliveries, so nothing is lost yet.",
  },
  probing: {
    severity: "warning",
    advice: "Probably somebody tries forgeries. The log names the address: block it.",
  },
  "held-full": {
    severity: "critical",
    advice: "Decide about the held events. Until then, further events that would be held are refused.",
  },
  refused: {
    severity: "critical",
    advice:
      "Authentic events were not stored. See the code in the list of errors, and fetch them by look-ups if the service has given up.",
  },
  "data-lost": {
    severity: "critical",
    advice: "Find out what happened to the store, and look up the payments of that time at the service.",
  },
  "keys-unreadable": {
    severity: "warning",
    advice: "See why the keys cannot be read. The last keys stay in use meanwhile.",
  },
  test: { severity: "info", advice: "Nothing has to be done." },
};
