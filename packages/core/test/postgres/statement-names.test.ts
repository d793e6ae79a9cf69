import { expect, it } from "vitest";
import { memoryStore } from "../../src/memory/store.ts";
import { checkSchemaName, countMissingRecords, inspectSchema } from "../../src/postgres/schema.ts";
import { statementsFor } from "../../src/postgres/statements.ts";
import { inspectSuitability } from "../../src/postgres/suitability.ts";
import { swapMany } from "../../src/postgres/swap-many.ts";
import { swapOne } from "../../src/postgres/swap-one.ts";
import { acceptedRecord, keyOf } from "../../src/testing/store/records.ts";
import { swapOf } from "../../src/testing/store/writes.ts";

const LONGEST_SCHEMA = "a".repeat(40);
/** For a longer name, `pg` writes a warning to stderr at each session. */
const MAX_NAME_CHARS = 63;

it("the name of every statement has at most 63 characters, even for the longest schema", () => {
  checkSchemaName(LONGEST_SCHEMA);
  expect(() => checkSchemaName(`${LONGEST_SCHEMA}a`)).toThrow("not a plain name");
  const store = memoryStore();
  const key = keyOf(1);
  const write = { item: swapOf(store, key, null, acceptedRecord(key, store.now(key))), text: "" };
  const names = [
    ...Object.values(statementsFor(LONGEST_SCHEMA)),
    inspectSchema(LONGEST_SCHEMA),
    countMissingRecords(LONGEST_SCHEMA),
    inspectSuitability(LONGEST_SCHEMA),
    swapOne(LONGEST_SCHEMA, write)?.statement,
    swapMany(LONGEST_SCHEMA, [write]).statement,
  ].map((statement) => statement?.name);
  expect(names).not.toContain(undefined);
  expect(names.filter((name = "") => name.length > MAX_NAME_CHARS)).toEqual([]);
  expect(new Set(names.filter((name) => name !== "")).size).toBe(names.filter((name) => name !== "").length);
});
