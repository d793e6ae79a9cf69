/** A map in order of insertion that never holds more than `limit` values. */
export interface BoundedMap<Value> {
  get(id: string): Value | undefined;
  /** Adds a value. At the limit, the oldest value that may go is dropped first; if none may go, the oldest one is. */
  set(id: string, value: Value): void;
  values(): Value[];
  clear(): void;
}

/**
 * @param mayGo says whether a value is finished. Finished values are dropped before others.
 * @param dropped is called with every value that is dropped.
 */
export function boundedMap<Value>(
  limit: number,
  mayGo: (value: Value) => boolean,
  dropped: (value: Value) => void = () => {},
): BoundedMap<Value> {
  const values = new Map<string, Value>();
  const makeRoom = () => {
    let victim: [string, Value] | undefined;
    for (const entry of values) {
      victim ??= entry;
      if (mayGo(entry[1])) {
        victim = entry;
        break;
      }
    }
    if (victim === undefined) return;
    values.delete(victim[0]);
    dropped(victim[1]);
  };
  return {
    get: (id) => values.get(id),
    set(id, value) {
      if (!values.has(id) && values.size >= limit) makeRoom();
      values.set(id, value);
    },
    values: () => [...values.values()],
    clear: () => values.clear(),
  };
}
