import { type StoreTest, storeContract } from "@payhooks/core/testing/store";
import type { ObjectStorage } from "../../packages/core/src/durable-object/storage.ts";
import { DurableObjectStore } from "../../packages/core/src/durable-object/store.ts";
import { fakeClock } from "../../packages/core/src/testing/clock.ts";
import { casesOfSlowStores, isFor } from "./inbox-contract.ts";
import type { FixtureKind, InboxFixture } from "./inbox-processes.ts";
import { skippingClock } from "./skipping-clock.ts";
import { sqliteTraits } from "./sqlite-store-traits.ts";

const kind: FixtureKind = { timeTravel: true, endsWithProcess: false, sleeps: true };

const TABLES = ["records", "events", "readings", "meta"];
const NAMES = new RegExp(String.raw`\b(?:\w+_)?(?:${TABLES.join("|")})(?:_\w+)*\b`, "g");

let count = 0;

/** An object has one database. So each case has tables of its own in it: the same statements, with other names. */
function freshTables({ sql, ...storage }: ObjectStorage): ObjectStorage & { drop(): void } {
  const prefix = `case${++count}_`;
  const renamed = (text: string): string => text.replace(NAMES, `${prefix}$&`);
  return {
    ...storage,
    sql: { exec: (text, ...bindings) => sql.exec(renamed(text), ...bindings) },
    drop() {
      for (const table of TABLES) sql.exec(renamed(`DROP TABLE IF EXISTS ${table}`));
    },
  };
}

function inboxFixture(storage: ObjectStorage): InboxFixture {
  const { clock, advance } = skippingClock();
  const tables = freshTables(storage);
  return {
    ...kind,
    clock,
    async advance(ms) {
      // The work that was begun before time moves on takes some commits, and each commit takes a turn.
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
      await advance(ms);
    },
    leaseMs: 30_000,
    open: () => ({ store: new DurableObjectStore(tables, clock) }),
    close: async () => tables.drop(),
  };
}

/** Every test of the contracts of stores and of inboxes, in the storage of an object. Several processes have it, as no object has. */
export function durableObjectCases(storage: ObjectStorage): readonly StoreTest[] {
  const ofStores = storeContract(() => {
    const clock = fakeClock();
    const tables = freshTables(storage);
    return {
      connect: () => new DurableObjectStore(tables, clock),
      advance: (ms) => clock.advance(ms),
      close: async () => tables.drop(),
    };
  }, sqliteTraits);
  const ofInboxes = casesOfSlowStores.filter((one) => isFor(one, kind));
  return [
    ...ofStores,
    ...ofInboxes.map((one) => ({ name: one.name, run: () => one.run(() => inboxFixture(storage)) })),
  ];
}
