import type {
  EventFilter,
  RecordStore,
  Swap,
  SwapResult,
  UnreadableRecord,
  VersionedRecord,
} from "@payhooks/core/inbox";
import { ServerClock } from "../../packages/core/src/inbox/server-clock.ts";
import type { Clock } from "../../packages/core/src/time/clock.ts";
import type { Site } from "./faults.ts";
import type { Links } from "./links.ts";
import { REPLICATION_MS, storeNow, type World } from "./world.ts";
import { type Writer, written } from "./written.ts";

/** A process, as far as its way to the store is concerned. */
export interface LinkedProcess extends Writer {
  readonly clock: Clock;
  readonly frozenUntil: number;
  /** The process does not reach the store before this time. */
  readonly cutOffUntil: number;
  suffer: Parameters<World["meet"]>[2]["suffer"];
}

/** A store out of reach is noticed after this time. */
const TIMEOUT_MS = 300;
/** By how much a late call or answer is late, about. */
export const LATE_MS = [40, 400, 3_000] as const;

const TOO_NEW: UnreadableRecord = { unreadable: "a newer version has written it" };

class Unreachable extends Error {
  readonly code = "ECONNRESET";
  constructor(what: string) {
    super(`the simulated store: ${what}`);
  }
}

/** A call on its way. */
interface Call<T> {
  readonly site: Site;
  effect(): T;
  /** The answer that arrives, if it is not the true one. */
  twice?(answer: T): T;
  part?(): T;
  /** The result of a call that gets no answer. Default: an error. */
  unanswered?(cause: Error, wasMade: boolean): T | null;
}

/**
 * The way of one process to the store: each call takes its time to get there and back, and everything can go wrong on the way.
 */
export function linkTo(world: World, links: Links, process: LinkedProcess): RecordStore {
  const { timeline, dice, store, chronicle } = world;
  const clock = new ServerClock(process.clock);
  let isClosed = false;
  let calls = 0;

  const name = process.name;
  const latency = (purpose: string): number => dice.between(0.2, 2, purpose, process.number, calls);

  function send<T>({ site, effect, twice, part, unanswered }: Call<T>): Promise<T> {
    calls++;
    if (isClosed) chronicle.late.push(`${name} calls ${site} of a store that it has closed`);
    const callFault = world.meet(site, "before", process);
    if (!process.isAlive) return new Promise(() => {});
    const way = latency("way");
    const back = latency("back");
    const lateBy = dice.pick(LATE_MS, "late", process.number, calls);
    const leftAt = Math.max(timeline.now, process.frozenUntil);
    const askedAt = process.clock.monotonic();
    return new Promise((resolve, reject) => {
      const fail = (what: string, afterMs: number, wasMade: boolean): void => {
        timeline.at(Math.max(leftAt, timeline.now) + afterMs, process, () => {
          const cause = new Unreachable(what);
          const told = unanswered?.(cause, wasMade) ?? null;
          if (told === null) reject(cause);
          else resolve(told);
        });
      };
      const arrive = (answering: boolean): void => {
        const now = Math.max(timeline.now, leftAt);
        if (now < world.storeDownUntil || now < process.cutOffUntil) {
          fail("out of reach", TIMEOUT_MS, false);
          return;
        }
        let answer = callFault === "part" && part !== undefined ? part() : effect();
        const told = storeNow(world);
        if (callFault === "twice") answer = again(answer);
        world.meet(site, "after", process);
        if (!answering || !process.isAlive) return;
        if (callFault === "answer-lost") {
          fail("no answer", TIMEOUT_MS / 3, true);
          return;
        }
        timeline.at(timeline.now + back + (callFault === "late" ? lateBy : 0), process, () => {
          clock.recordServerTime(told, askedAt);
          resolve(answer);
        });
      };
      /** The call reaches the store twice: its driver repeats it, or the network does. */
      const again = (answer: T): T => {
        if (dice.chance(0.5, "resent", process.number, calls)) return (twice ?? effect)(answer);
        timeline.at(timeline.now + lateBy, null, () => (twice ?? effect)(answer));
        return answer;
      };
      if (callFault === "not-made") fail("the connection was lost", way, false);
      else if (callFault === "lands-late") {
        fail("no answer yet", TIMEOUT_MS / 3, true);
        timeline.at(leftAt + lateBy, null, () => arrive(false));
      } else timeline.at(leftAt + way, null, () => process.isAlive && arrive(true));
    });
  }

  /** A record as this process can read it. */
  const seen = <V extends VersionedRecord>(found: V): V =>
    world.newFormats.has(found.version) && !process.isNewVersion ? { ...found, record: TOO_NEW } : found;
  const seenOrNull = (found: VersionedRecord | null): VersionedRecord | null => found && seen(found);

  const writeAll = (items: readonly Swap[]): readonly SwapResult[] => items.map(writeOne);
  const writeOne = (item: Swap): SwapResult => {
    const result = written(world, process, item);
    if (result.kind === "written" && item.shouldAnnounce) links.announce(process);
    return result.kind === "conflict" ? { ...result, current: seenOrNull(result.current) } : result;
  };
  const fate = (cause: Error, wasMade: boolean): SwapResult => ({
    kind: wasMade || dice.chance(0.5, "fate", process.number, calls) ? "unknown" : "not-written",
    cause,
  });

  return {
    durability: world.plan.replicated ? "replicated" : "host",
    get datasetId() {
      return store.datasetId;
    },
    open: () => send({ site: "open", effect: () => {} }),
    read: (keys) => send({ site: "read", effect: () => store.read(keys).map(seenOrNull) }),
    swap(items) {
      chronicle.log(timeline.now, name, () => `asks to write ${items.map(lineOf).join("; ")}`);
      return send({
        site: "swap",
        effect: () => writeAll(items),
        part: () =>
          items.map((item, at) =>
            dice.chance(0.5, "part", calls, at)
              ? writeOne(item)
              : { kind: "not-written", cause: new Unreachable("refused") },
          ),
        unanswered: (cause, wasMade) =>
          dice.chance(0.5, "thrown", process.number, calls) ? null : items.map(() => fate(cause, wasMade)),
      });
    },
    takeDue: (limit, hideMs) =>
      send({
        site: "takeDue",
        effect: () => {
          const due = store.takeDue(limit, hideMs);
          if (due.records.length > 0) {
            chronicle.log(
              timeline.now,
              name,
              () => `is given ${due.records.map(({ key }) => key.slice(0, 6)).join(", ")}`,
            );
          }
          return { ...due, records: due.records.map(seen) };
        },
        // A second poll hides the records that it finds, too.
        twice: (first) => {
          store.takeDue(limit, hideMs);
          return first;
        },
      }),
    now: () => clock.now(),
    ...(world.plan.replicated ? { replicated: replicatedBy(world, process, send) } : {}),
    async onDue(wake) {
      return links.listen(process, wake);
    },
    list: (filter: EventFilter, cursor, limit, first) =>
      send({ site: "read", effect: () => store.list(filter, cursor, limit, first) }).then(async (listing) => {
        const page = await listing;
        return {
          ...page,
          events: page.events.map((event) => ({ ...event, versioned: seen(event.versioned) })),
        };
      }),
    counts: () => send({ site: "read", effect: () => store.counts() }),
    prune: (before) => send({ site: "read", effect: () => store.prune(before) }).then((more) => more),
    readNote: (name) => send({ site: "read", effect: () => store.readNote(name) }).then((text) => text),
    writeNote: (name, text) =>
      send({ site: "read", effect: () => store.writeNote(name, text) }).then(() => {}),
    close: () =>
      send({ site: "close", effect: () => {} }).finally(() => {
        isClosed = true;
      }),
  };
}

/** After a while the replicas have everything that the primary has, unless there was a failover in between. */
function replicatedBy(
  world: World,
  process: LinkedProcess,
  send: <T>(call: Call<T>) => Promise<T>,
): NonNullable<RecordStore["replicated"]> {
  return async (items) => {
    const epoch = await send({
      site: "replicated",
      effect: () =>
        items.every(({ key, version }) => world.store.knows(key, version)) ? world.storeEpoch : null,
    });
    if (epoch === null) throw new Unreachable("the record is not there");
    await new Promise<void>((resolve) => {
      world.timeline.at(world.timeline.now + REPLICATION_MS, process, resolve);
    });
    if (epoch !== world.storeEpoch) throw new Unreachable("another primary has taken over");
  };
}

function lineOf({ key, record, shouldAnnounce }: Swap): string {
  const slots = Object.entries(record.slots).map(([slot, { status, name, state, work }]) => {
    const handlers = Object.entries(work?.handlerStates ?? {}).map(
      ([handler, { state: at }]) => `${handler} ${at}`,
    );
    return `${slot.slice(0, 4)} ${status || name} ${state}${handlers.length > 0 ? ` (${handlers.join(", ")})` : ""}`;
  });
  const lease = record.lease === null ? "" : `, lease ${record.lease.token}`;
  return `${key.slice(0, 6)}: ${slots.join(", ")}${lease}${shouldAnnounce ? ", announced" : ""}`;
}
