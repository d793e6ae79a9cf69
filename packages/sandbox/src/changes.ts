/** The kinds of changes in a sandbox. */
export type ChangeTopic =
  | "transaction"
  | "delivery"
  | "fault"
  | "script"
  | "account"
  | "settlement"
  | "settings"
  | "keys"
  | "reset";

/** One change. `id` says which one of its kind has changed, and is empty if there is only one. */
export interface Change {
  readonly topic: ChangeTopic;
  readonly id: string;
}

/** Tells the state file, the dashboard and tests that wait when something changes. */
export interface Changes {
  publish(topic: ChangeTopic, id?: string): void;
  /** Calls the listener after every change, until the returned function is called. */
  subscribe(listener: (change: Change) => void): () => void;
}

export function createChanges(): Changes {
  const listeners = new Set<(change: Change) => void>();
  return {
    publish(topic, id = "") {
      for (const listener of [...listeners]) listener({ topic, id });
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
