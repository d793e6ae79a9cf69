import type { AnyReceiver, Receiver } from "../receiver/receiver.ts";
import { emptyContext } from "../time/async-context.ts";

/** Returns the receiver of the process, which is made at the first call. */
export type SharedReceiver<Shared extends AnyReceiver = Receiver> = () => Shared;

interface SharedEntry {
  receiver: AnyReceiver | null;
  make: () => AnyReceiver;
}

const ENTRIES_KEY = Symbol.for("payhooks.receivers");
/** A function, so that printing `globalThis` shows nothing of it. */
const globals = globalThis as { [ENTRIES_KEY]?: () => Map<string, SharedEntry> };

/** Marks factories whose receiver may be replaced by a newer one. Adapters call these each time. */
const SHARED_MARK = Symbol.for("payhooks.shared");

/**
 * Keeps one receiver for the whole process, even if a bundler loads several copies of the module that makes it. So there is one
 * set of connections and one memory inbox. In development, an edited module replaces the receiver, and the old receiver finishes
 * its running events. With `NODE_ENV=production`, the first receiver stays.
 *
 * @param name distinguishes the receivers of a process that has several.
 * @example export const receiver = sharedReceiver(() => createReceiver({ … }).onDeposit(credit));
 */
export function sharedReceiver<Shared extends AnyReceiver>(
  make: () => Shared,
  name = "default",
): SharedReceiver<Shared> {
  globals[ENTRIES_KEY] ??= readerOf(new Map());
  const entries = globals[ENTRIES_KEY]();
  const existingEntry = entries.get(name);
  const entry = existingEntry ?? { receiver: null, make };
  entries.set(name, entry);
  if (existingEntry !== undefined && process.env.NODE_ENV !== "production") {
    void entry.receiver?.close().catch(() => {});
    entry.receiver = null;
    entry.make = make;
  }
  const getReceiver: SharedReceiver<Shared> = () => {
    entry.receiver ??= emptyContext.run(() => entry.make());
    return entry.receiver as Shared;
  };
  return Object.assign(getReceiver, { [SHARED_MARK]: true });
}

function readerOf(entries: Map<string, SharedEntry>): () => Map<string, SharedEntry> {
  return () => entries;
}

/** True for a result of {@link sharedReceiver}, even from another copy of this module. */
export function isShared(factory: object): boolean {
  return Object.hasOwn(factory, SHARED_MARK);
}
