/** The options of the client that decide how requests are checked and written. */
export interface RequestRules {
  /** How `amount` is written into the JSON: a number token with the same digits, or a string. */
  readonly amountAs: "number" | "string";
  readonly allowUnknownMedium: boolean;
  readonly allowHttpLoopback: boolean;
}

/** A checked request: its JSON text, and the reference under which its outcome can be looked up. */
export interface CheckedRequest {
  readonly body: string;
  readonly reference: string;
}
