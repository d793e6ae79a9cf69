import { libraryBuild } from "../../tsup.base.ts";

export default libraryBuild({
  index: "src/index.ts",
  signature: "src/signature/index.ts",
  adapter: "src/adapter.ts",
  fetch: "src/fetch.ts",
  inbox: "src/inbox/index.ts",
  redis: "src/redis/index.ts",
  sqlite: "src/sqlite/index.ts",
  testing: "src/testing/index.ts",
});
