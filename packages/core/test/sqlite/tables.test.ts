/** Tables that another program has dropped under a running process are made again, and the loss is told once. */
import { sqliteStore } from "@payhooks/core/sqlite";
import { expect, it, onTestFinished } from "vitest";
import { acceptedRecord, keyOf } from "../../src/testing/store/records.ts";
import { swapOf } from "../../src/testing/store/writes.ts";
import { fates, newFile, openFile } from "./database-files.ts";

it.each(["records", "events", "readings", "meta"])("%s", async (table) => {
  const file = newFile();
  const store = sqliteStore(file);
  await store.open();
  onTestFinished(() => store.close());
  const other = openFile(file);
  other.exec(`DROP TABLE ${table}`);
  other.close();
  expect(await store.findLoss?.([])).toBe("replaced");
  expect(await store.findLoss?.([])).toBeNull();
  const key = keyOf(1);
  const record = acceptedRecord(key, store.now(key), { foundBy: ["order-1"] });
  expect(await fates(store, [swapOf(store, key, null, record)])).toEqual(["written"]);
});
