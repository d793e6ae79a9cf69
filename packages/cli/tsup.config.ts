import { defineConfig } from "tsup";

export default defineConfig({
  entry: { payhooks: "src/payhooks.ts" },
  format: "esm",
  target: "node20",
  platform: "node",
  clean: true,
  // Each command is a chunk of its own, read when it is called.
  splitting: true,
  removeNodeProtocol: false,
});
