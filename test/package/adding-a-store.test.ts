/** Follows docs/guides/adding-a-store.md to the letter, in a project that has nothing but the packed core. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readDocument } from "../docs/markdown.ts";
import { bin, install, pack, run, write } from "./pack.ts";
import { packagesIn, readManifest, root } from "./workspace.ts";

const project = mkdtempSync(join(tmpdir(), "payhooks-store-"));
afterAll(() => rmSync(project, { recursive: true, force: true }));

it("the store of the page compiles, and passes the contract", async () => {
  const core = packagesIn("packages").filter(({ manifest }) => manifest.name === "@payhooks/core");
  const tarballs = await pack(core, project);
  const versions = ["@electric-sql/pglite", "vitest", "@types/node"].map((name) => {
    return [name, readManifest(join(root, "test/node_modules", name)).version] as const;
  });
  const dependencies = { ...tarballs, ...Object.fromEntries(versions) };
  write(project, "package.json", { name: "store", private: true, type: "module", dependencies });
  const [store, test] = readDocument("docs/guides/adding-a-store.md").blocks.filter(
    ({ language }) => language === "ts",
  );
  write(project, "table-store.ts", store?.text);
  write(project, "table-store.test.ts", test?.text);
  const compilerOptions = { module: "nodenext", target: "es2023", strict: true, noEmit: true };
  const others = { allowImportingTsExtensions: true, skipLibCheck: true, types: ["node"] };
  write(project, "tsconfig.json", { compilerOptions: { ...compilerOptions, ...others } });
  await install(project, tarballs);

  expect(await run(bin("tsc"), ["-p", "."], project)).toBe("");
  const vitest = join(project, "node_modules", ".bin", "vitest");
  const report = JSON.parse(await run(vitest, ["run", "--reporter=json", "--silent"], project)) as object;
  expect(report).toMatchObject({ success: true, numFailedTests: 0, numPendingTests: 0 });
  expect((report as { readonly numPassedTests: number }).numPassedTests).toBeGreaterThan(35);
});
