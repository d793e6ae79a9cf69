import type { TestProject } from "vitest/node";
import { installRuntimes } from "./install.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Null where the SQLite drivers that need a compiler are installed; else in words why they are not. */
    whyNoDrivers: string | null;
  }
}

/** Once, before any test begins: two workers that install would be in each other's way. */
export async function setup(project: TestProject): Promise<void> {
  const { whyNoDrivers } = await installRuntimes();
  project.provide("whyNoDrivers", whyNoDrivers);
}
