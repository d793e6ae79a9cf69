import { generateKeyPairSync } from "node:crypto";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    readonly keyPairs: readonly { readonly publicKey: string; readonly privateKey: string }[];
  }
}

/** Makes the RSA keys of a mutation run once: a thousand changes would make each test file's keys a thousand times. */
export function setup(project: TestProject): void {
  const pair = () =>
    generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
  project.provide("keyPairs", Array.from({ length: 12 }, pair));
}
