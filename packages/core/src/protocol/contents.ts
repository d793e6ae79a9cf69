/** One field of an event, as a person sees it. */
export interface ContentField {
  /** The field's name; within a webhook its path, such as `data.status`. */
  readonly name: string;
  /** The value that the handlers get. Null if they do not get it, because the signed text can be read in more than one way. */
  readonly value: string | null;
}

/** A piece of the signed text. It begins with the name of a field. */
export interface SignedPiece {
  /**
   * The field whose name the piece begins with, by its name in events. Null for a webhook, which is one piece, and for
   * a piece that begins with no name.
   */
  readonly name: string | null;
  readonly text: string;
}

/** The transactions that an ambiguous event may be about, to be looked up at the service. */
export interface Candidates {
  /** The `payTxnId` of each reading, at most 8. Some of them may be made up. */
  readonly ids: readonly string[];
  /** False if there are more, or if the genuine transaction may be missing. */
  readonly complete: boolean;
}

/** An event as a person sees it: the fields that its handlers get, and the signed text. Never the body with its own spelling. */
export interface Contents {
  /** Empty if no field can be read. */
  readonly fields: readonly ContentField[];
  /** In their order; together, the pieces are the signed text. Empty for a look-up, which is not signed. */
  readonly signed: readonly SignedPiece[];
  /** Null if the event is not ambiguous by today's rules. */
  readonly candidates: Candidates | null;
}
