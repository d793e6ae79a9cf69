import type { TestProject } from "vitest/node";
import { createTestKeys, type TestKeys } from "../../packages/core/src/testing/signers.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly keyPairs: readonly TestKeys[];
  }
}

/** Makes the RSA keys of a mutation run once: a thousand changes would make each test file's keys a thousand times. */
export function setup(project: TestProject): void {
  project.provide("keyPairs", Array.from({ length: 12 }, createTestKeys));
}
