import { libraryBuild } from "../../tsup.base.ts";

export default libraryBuild({
  index: "src/index.ts",
  express: "src/express.ts",
  fastify: "src/fastify.ts",
  hono: "src/hono.ts",
  next: "src/next.ts",
});
