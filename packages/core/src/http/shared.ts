import type { Receiver } from "../receiver/receiver.ts";

/** Gives the process's receiver, made when it is first asked for. */
export type SharedReceiver = () => Receiver;

interface Shelf {
  receiver: Receiver | null;
  make: SharedReceiver;
}

const SHELVES = Symbol.for("payhooks.receivers");
/** A function, so that nothing of it shows when `globalThis` is printed. */
const home = globalThis as { [SHELVES]?: () => Map<string, Shelf> };

/** Factories whose receiver may be replaced by a newer one: adapters ask them each time. */
const SHARED = Symbol.for("payhooks.shared");

/**
 * One receiver for the whole process, however many copies of the module that makes it a bundler loads, and so one set
 * of connections and one memory inbox. In development a module that was edited replaces the receiver, which finishes
 * what it runs; with `NODE_ENV=production` the first one stays.
 *
 * @param name tells receivers apart where a process has several.
 * @example export const receiver = sharedReceiver(() => createReceiver({ … }).onDeposit(credit));
 */
export function sharedReceiver(make: () => Receiver, name = "default"): SharedReceiver {
  home[SHELVES] ??= shelvesFor(new Map());
  const shelves = home[SHELVES]();
  const known = shelves.get(name);
  const shelf = known ?? { receiver: null, make };
  shelves.set(name, shelf);
  if (known !== undefined && process.env.NODE_ENV !== "production") {
    void shelf.receiver?.close().catch(() => {});
    shelf.receiver = null;
    shelf.make = make;
  }
  const shared: SharedReceiver = () => {
    shelf.receiver ??= shelf.make();
    return shelf.receiver;
  };
  return Object.assign(shared, { [SHARED]: true });
}

function shelvesFor(shelves: Map<string, Shelf>): () => Map<string, Shelf> {
  return () => shelves;
}

/** True for what {@link sharedReceiver} made, also in another copy of this module. */
export function isShared(factory: object): boolean {
  return Object.hasOwn(factory, SHARED);
}
