// Finds PostgreSQL for the suites that start one.
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { leaveOut, suitesThatUse } from "./suites.mjs";

/** Suites that start a PostgreSQL of their own. */
export const postgresSuites = suitesThatUse("test/faults/harness/postgres-server.ts");

/** Debian keeps the server here, out of PATH, by version. */
const DEBIAN = "/usr/lib/postgresql";

/** The folder with `initdb` and `postgres`, or null. */
export function postgresBin({ debian = DEBIAN, path = process.env.PATH ?? "" } = {}) {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, "bin")), ...path.split(delimiter)];
  const hasServer = (folder) =>
    folder !== "" && ["initdb", "postgres"].every((program) => existsSync(join(folder, program)));
  return folders.find(hasServer) ?? null;
}

/** If there is none, prints which suites are left out. With `CI` set, that is a failure, since nobody would read the line. */
export function expectPostgres(where = {}) {
  if (postgresBin(where) !== null) return;
  leaveOut(postgresSuites, "PostgreSQL", "apt-get install -y postgresql");
}
