import type { SqliteHandle } from "@payhooks/core/sqlite";
import { contractCases, isFor } from "./inbox-contract.ts";
import { sqliteGround } from "./sqlite-ground.ts";
import { sqliteStoreGround, sqliteTraits } from "./sqlite-store-ground.ts";
import { runStoreCase, storeCases } from "./store-contract.ts";

/** Every case that is meant for SQLite, of the contract of stores and of that of inboxes: where no test runner is. */
export async function sqliteCases(
  open: (file: string) => SqliteHandle,
): Promise<readonly { readonly name: string; readonly run: () => Promise<void> }[]> {
  const ground = sqliteGround(open);
  await ground.close();
  const ofStores = storeCases.filter(({ needs }) => needs === undefined || sqliteTraits[needs]);
  const ofInboxes = contractCases.filter((one) => isFor(one, ground));
  return [
    ...ofStores.map((one) => ({
      name: one.name,
      run: () => runStoreCase(one, () => sqliteStoreGround(open)),
    })),
    ...ofInboxes.map((one) => ({ name: one.name, run: () => one.run(() => sqliteGround(open)) })),
  ];
}
