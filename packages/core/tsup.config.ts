import { libraryBuild } from "../../tsup.base.ts";

export default libraryBuild({
  index: "src/index.ts",
  signature: "src/signature/index.ts",
  adapter: "src/adapter.ts",
  fetch: "src/fetch.ts",
  inbox: "src/inbox/index.ts",
  postgres: "src/postgres/index.ts",
  redis: "src/redis/index.ts",
  sqlite: "src/sqlite/index.ts",
  effects: "src/effects/index.ts",
  "effects/pg": "src/effects/pg.ts",
  "effects/postgres": "src/effects/postgres.ts",
  "effects/drizzle": "src/effects/drizzle.ts",
  "effects/kysely": "src/effects/kysely.ts",
  "effects/prisma": "src/effects/prisma.ts",
  "effects/sqlite": "src/effects/sqlite.ts",
  testing: "src/testing/index.ts",
  "testing/store": "src/testing/store/index.ts",
});
