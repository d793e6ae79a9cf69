/** A map in order of insertion that never holds more than `limit` values. */
export interface BoundedMap<Value> {
  get(id: string): Value | undefined;
  /** Adds a value. At the limit, the oldest value that may go is dropped first; if none may go, the oldest one is. */
  set(id: string, value: Value): void;
  values(): Value[];
  clear(): void;
}

/**
 * @param mayEvict says whether a value is finished. Finished values are dropped before others.
 * @param onEvict is called with every value that is dropped.
 */
export function boundedMap<Value>(
  limit: number,
  mayEvict: (value: Value) => boolean,
  onEvict: (value: Value) => void = () => {},
): BoundedMap<Value> {
  const values = new Map<string, Value>();
  const evictOne = () => {
    let victim: [string, Value] | undefined;
    for (const entry of values) {
      victim ??= entry;
      if (mayEvict(entry[1])) {
        victim = entry;
        break;
      }
    }
    if (victim === undefined) return;
    values.delete(victim[0]);
    onEvict(victim[1]);
  };
  return {
    get: (id) => values.get(id),
    set(id, value) {
      if (!values.has(id) && values.size >= limit) evictOne();
      values.set(id, value);
    },
    values: () => [...values.values()],
    clear: () => values.clear(),
  };
}
