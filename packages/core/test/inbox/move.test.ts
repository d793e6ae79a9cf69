import { expect, it } from "vitest";
import { moveRecords } from "../../src/inbox/move.ts";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { acceptedRecord, keyOf } from "../../src/testing/store/records.ts";
import { put, readOne } from "../../src/testing/store/writes.ts";
import { newFile } from "../sqlite/database-files.ts";

it("a move with a dryRun that is neither true nor false moves nothing", async () => {
  const [from, to] = [sqliteStore(newFile()), sqliteStore(newFile())];
  await from.open();
  await to.open();
  const key = keyOf(1);
  await put(from, key, null, acceptedRecord(key, Date.now()));
  for (const dryRun of ["true", "false", 0, 1, null, 1n]) {
    await expect(moveRecords(from, to, { dryRun: dryRun as never })).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining("dryRun of moveRecords is "),
    });
  }
  expect(await readOne(from, key)).not.toBeNull();
  await from.close();
  await to.close();
});
