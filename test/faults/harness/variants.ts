/**
 * Inboxes with one mistake each, as they are found in hand-written receivers. The suite must catch every one of them:
 * this proves that it would catch a mistake of ours.
 */
import type { Inbox, RecordStore, Swap, VersionedRecord } from "@payhooks/core/inbox";
import { isUnreadable } from "@payhooks/core/inbox";
import { Redis } from "ioredis";
import type { AcceptResult, VerifiedEvent } from "../../../packages/core/src/inbox/record/event.ts";
import type { Slot } from "../../../packages/core/src/inbox/record/record.ts";
import { around } from "./around.ts";
import type { ChildConfig } from "./child-config.ts";
import { writeNamer } from "./writes.ts";

/** How much later a mistaken store does what it should have done before its answer: after the death, however slow. */
const TOO_LATE_MS = 30_000;
/** Longer than any test. */
const FOR_GOOD_MS = 86_400_000;

/** The changes that a variant makes to the inbox under test and to its store. */
export interface Broken {
  readonly store: (store: RecordStore) => RecordStore;
  readonly inbox: (inbox: Inbox, store: RecordStore) => Inbox;
}

export function variantOf(config: ChildConfig): Broken {
  const { variant } = config;
  if (variant === undefined) return onStore((store) => store);
  switch (variant) {
    case "acknowledge-before-write":
      return onStore(writesLater);
    case "taken-for-good":
      return onStore((store) => around(store, { takeDue: (limit) => store.takeDue(limit, FOR_GOOD_MS) }));
    case "lease-not-renewed":
      return onStore(renewsNothing);
    case "copy-unreplicated":
      return onStore(settlesOnce);
    case "writes-twice":
      return onStore((store) => writesTwice(store, (current) => current));
    case "writes-twice-unrecognised":
      return onStore((store) => writesTwice(store, asAnothers));
    case "set-nx": {
      const redis = connect(config);
      return onInbox(async ({ key }) => (await redis.set(`seen:${key}`, 1, "NX")) !== "OK");
    }
    case "conflict-as-duplicate":
      return onInbox(async ({ key }, store) => {
        const [found] = await store.read([key]);
        return found !== null;
      });
    case "old-guess": {
      const sent = new Set<string>();
      return onInbox(async ({ key }) => sent.has(key) || !sent.add(key));
    }
  }
}

function onStore(store: Broken["store"]): Broken {
  return { store, inbox: (inbox) => inbox };
}

/** An event that the mistaken check takes for a duplicate never reaches the table of deduplication. */
function onInbox(isKnown: (event: VerifiedEvent, store: RecordStore) => Promise<boolean>): Broken {
  return {
    store: (store) => store,
    inbox: (inbox, store) =>
      around(inbox, {
        async accept(event, options) {
          await inbox.ready();
          return (await isKnown(event, store)) ? duplicateOf(event) : inbox.accept(event, options);
        },
      }),
  };
}

function duplicateOf({ key, slot }: VerifiedEvent): AcceptResult {
  return {
    outcome: "duplicate",
    eventId: key + slot,
    reason: null,
    detail: null,
    previousAmount: null,
    isBegun: false,
    overtaken: [],
  };
}

function connect({ inbox }: ChildConfig): Redis {
  if (inbox.kind !== "redis" || typeof inbox.target !== "string")
    throw new Error("this variant is made for a URL");
  return new Redis(inbox.target, { maxRetriesPerRequest: null });
}

function writesLater(store: RecordStore): RecordStore {
  const nameOf = writeNamer();
  return around(store, {
    async swap(items) {
      const isAccept = items.map((item) => nameOf(item)?.write.startsWith("accept") === true);
      const later = items.filter((_, at) => isAccept[at]);
      setTimeout(() => void Promise.resolve(store.swap(later)).catch(() => {}), TOO_LATE_MS);
      const results = [...(await store.swap(items.filter((_, at) => !isAccept[at])))];
      return isAccept.map((flag) => (flag ? { kind: "written" } : (results.shift() ?? { kind: "written" })));
    },
  });
}

/** Nor does it look for what is due: a process that finds its own event first does not call a handler beside itself. */
function renewsNothing(store: RecordStore): RecordStore {
  const nameOf = writeNamer();
  return around(store, {
    takeDue: async () => ({ records: [], left: { usual: 0, patient: 0 }, nextDueAt: null }),
    async swap(items) {
      const isRenewal = items.map((item) => nameOf(item)?.write === "renew");
      const results = [...(await store.swap(items.filter((_, at) => !isRenewal[at])))];
      return isRenewal.map((flag) => (flag ? { kind: "written" } : (results.shift() ?? { kind: "written" })));
    },
  });
}

function settlesOnce(store: RecordStore): RecordStore {
  const asked = new Set<string>();
  return around(store, {
    async replicated(items) {
      const fresh = items.filter(({ key }) => !asked.has(key));
      for (const { key } of items) asked.add(key);
      if (fresh.length > 0) await store.replicated?.(fresh);
    },
  });
}

/** The answer is that to the second of two equal writes. */
function writesTwice(
  store: RecordStore,
  seen: (current: VersionedRecord, item: Swap) => VersionedRecord,
): RecordStore {
  return around(store, {
    async swap(items) {
      await store.swap(items);
      const results = await store.swap(items);
      return results.map((result, at) => {
        const item = items[at];
        if (item === undefined || result.kind !== "conflict" || result.current === null) return result;
        return { ...result, current: seen(result.current, item) };
      });
    },
  });
}

/** A record as if somebody else had written it. */
function asAnothers(current: VersionedRecord, item: Swap): VersionedRecord {
  const { record } = current;
  if (current.version !== item.version || isUnreadable(record)) return current;
  const token = "another";
  const slots = Object.entries(record.slots).map(([key, slot]) => {
    const taken: Slot = { ...slot, runToken: token };
    return [key, taken];
  });
  return {
    version: current.version.replace(/^./, "z"),
    record: {
      ...record,
      lease: record.lease === null ? null : { ...record.lease, token },
      slots: Object.fromEntries(slots),
    },
  };
}
