/** What can change in a sandbox. */
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

/** One change: what, and which. `id` is empty where there is only one of its kind. */
export interface Change {
  readonly topic: ChangeTopic;
  readonly id: string;
}

/** Tells the state file, the dashboard and waiting tests that something changed. */
export interface Changes {
  publish(topic: ChangeTopic, id?: string): void;
  /** Calls back after every change; the returned function ends that. */
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
