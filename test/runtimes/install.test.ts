import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { installationOf, whyNotInstalled } from "./install.ts";

const folder = mkdtempSync(join(tmpdir(), "payhooks-install-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A manifest that asks for one package, whose install script is a program of Node's. */
function manifestWith(name: string, script: string): string {
  const driver = join(folder, name);
  mkdirSync(driver);
  const scripts = { install: `node -e "${script}"` };
  writeFileSync(join(driver, "package.json"), JSON.stringify({ name, version: "1.0.0", scripts }));
  writeFileSync(join(driver, "index.js"), "module.exports = 42;");
  const manifest = join(folder, `${name}.json`);
  writeFileSync(manifest, JSON.stringify({ dependencies: { [name]: `file:${driver}` } }));
  return manifest;
}

describe("a driver that is compiled when it is installed", { timeout: 60_000 }, () => {
  it("is named with the error of the compiler if it cannot be compiled", async () => {
    const script = "console.error('no headers of Node'); process.exit(1)";
    const installation = installationOf(manifestWith("uncompilable", script), folder);
    const why = await whyNotInstalled(installation);
    expect(why).toContain("uncompilable is not installed");
    expect(why).toContain("npm_config_nodedir");
    expect(why).toContain("no headers of Node");
    expect((why ?? "").length).toBeLessThan(5_000);
    // The next run tries again, since what was missing may be there by then.
    expect(await whyNotInstalled(installation)).toContain("no headers of Node");
  });

  it("can be loaded if it was compiled", async () => {
    const installation = installationOf(manifestWith("compilable", "process.exit(0)"), folder);
    expect(await whyNotInstalled(installation)).toBeNull();
    expect(createRequire(join(installation.folder, "package.json"))("compilable")).toBe(42);
  });
});
