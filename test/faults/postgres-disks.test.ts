/** PostgreSQL has no room left: what cannot be kept is not acknowledged, and all goes on when there is room again. */
import { describe, expect, it } from "vitest";
import { Disk, mayMakeDisks } from "./harness/disk.ts";
import { refused } from "./harness/fault-under-load.ts";
import { expectSound, play } from "./harness/postgres-faults.ts";
import { withScope } from "./harness/scope.ts";

/** PostgreSQL keeps some room in its tables that it can still use. */
const FAULT_MS = 8_000;

describe.skipIf(!(await mayMakeDisks()))("PostgreSQL, on a disk", { timeout: 240_000 }, () => {
  it("loses nothing if the tables have no room", () =>
    withScope(async (scope) => {
      const disk = Disk.make(scope, "24m");
      if (disk === null) expect.fail("no disk");
      const played = await play(
        "PostgreSQL: tables on a full disk",
        { begin: () => disk.fill(), end: () => disk.clear() },
        {
          faultMs: FAULT_MS,
          async prepare(server) {
            server.ownFolder(`${disk.folder}/tables`);
            await server.tell(`CREATE TABLESPACE small LOCATION '${disk.folder}/tables'`);
            await server.tell("ALTER ROLE postgres SET default_tablespace = small");
          },
        },
      );
      expectSound(played);
      expect(refused(played)).toBeGreaterThan(0);
    }));

  it("loses nothing if the log has no room either, so that the server ends", () =>
    withScope(async (scope) => {
      const disk = Disk.make(scope, "110m");
      if (disk === null) expect.fail("no disk");
      const played = await play(
        "PostgreSQL: everything on a full disk",
        {
          begin: () => disk.fill(),
          async end({ server }) {
            disk.clear();
            await server.kill();
            await server.up();
          },
        },
        {
          faultMs: FAULT_MS,
          disk: disk.folder,
          settings: ["max_wal_size=8MB", "min_wal_size=8MB", "wal_recycle=off"],
        },
      );
      expectSound(played);
      expect(refused(played)).toBeGreaterThan(0);
    }));
});
