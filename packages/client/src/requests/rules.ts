/** The options of the client that decide how requests are checked and written. */
export interface RequestRules {
  /** How `amount` is written into the JSON: as a number with the same digits, or as a string. */
  readonly amountAs: "number" | "string";
  readonly allowUnknownMedium: boolean;
  readonly allowHttpLoopback: boolean;
  /** The service's own medium. It is written for `PAY`. */
  readonly payMedium: string;
}

/** A checked request: its JSON text, and the reference by which its outcome can be looked up. */
export interface CheckedRequest {
  readonly body: string;
  readonly reference: string;
}
