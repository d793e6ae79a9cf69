import type { SqliteHandle } from "@payhooks/core/sqlite";
import { type StoreTest, storeContract } from "@payhooks/core/testing/store";
import { casesOfSlowStores, isFor } from "./inbox-contract.ts";
import { effectsHappenOnce } from "./sqlite-effects.ts";
import { sqliteInboxFixture, sqliteKind } from "./sqlite-inbox-fixture.ts";
import { sqliteStoreFixture } from "./sqlite-store-fixture.ts";
import { sqliteTraits } from "./sqlite-store-traits.ts";

/** Every test of the contracts of stores and of inboxes on SQLite, for a runtime without a test runner. */
export function sqliteCases(open: (file: string) => SqliteHandle): readonly StoreTest[] {
  const ofInboxes = casesOfSlowStores.filter((one) => isFor(one, sqliteKind));
  return [
    ...storeContract(() => sqliteStoreFixture(open), sqliteTraits),
    { name: "effects happen once", run: () => effectsHappenOnce(open) },
    ...ofInboxes.map((one) => ({ name: one.name, run: () => one.run(() => sqliteInboxFixture(open)) })),
  ];
}
