/** One field of an event, as a person sees it. */
export interface ContentField {
  /** The field's name; within a webhook its path, such as `data.status`. */
  readonly name: string;
  /** The value that its handlers get. Null if they do not get it, since what was signed can be read in more than one way. */
  readonly value: string | null;
}

/** A piece of what was signed, which begins with the name of a field. */
export interface SignedPiece {
  /** The field whose name the piece begins with, by what events call it. Null for a webhook, which is one piece, and for what begins with no name. */
  readonly name: string | null;
  readonly text: string;
}

/** The transactions that an ambiguous event may be about, to be looked up at the service. */
export interface Candidates {
  /** The `payTxnId` of each reading, at most 8. Some of them may be made up. */
  readonly ids: readonly string[];
  /** False if there are more, or if the true one may be missing. */
  readonly complete: boolean;
}

/** An event as a person sees it: the fields that its handlers get, and the signed text. Never the body as it was spelt. */
export interface Contents {
  /** Empty if nothing of it can be read. */
  readonly fields: readonly ContentField[];
  /** In its order; together, the pieces are the signed text. Empty for a look-up, which nobody has signed. */
  readonly signed: readonly SignedPiece[];
  /** Null if the event is not ambiguous by today's rules. */
  readonly candidates: Candidates | null;
}
