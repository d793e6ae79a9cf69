import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ADAPTERS, packageOf } from "../adapters.ts";
import { packagesIn, shown, sourcesOf } from "../package/workspace.ts";

/**
 * Time cannot be measured reliably in a test; how a comparison is made can be read. Whatever a secret goes into is
 * compared by `timingSafeEqual`, never by `===`, and with every secret.
 */
const sources = packagesIn("packages")
  .filter(({ manifest }) => ["@payhooks/core", ...ADAPTERS.map(packageOf)].includes(manifest.name))
  .flatMap(sourcesOf)
  .map((path) => ({ path: shown(path), text: readFileSync(path, "utf8") }));

const textOf = (path: string): string => {
  const found = sources.find((one) => one.path === path);
  if (found === undefined) throw new Error(`${path} is not there`);
  return found.text;
};

/** Comparisons with what was made of a secret, by an operator that stops at the first difference. */
function leakyComparisons(text: string): string[] {
  const secret = String.raw`\b(?:digest|hmac|claimed|expected|secret|signature|bearer|mac)\b`;
  const compared = new RegExp(
    String.raw`(?:${secret}(?:\.\w+\([^)]*\))?\s*[!=]==\s*(?!null\b|undefined\b|""|true\b|false\b)\S+)|(?:\S+\s*(?<!typeof \w+ )[!=]==\s*${secret})`,
    "g",
  );
  return [...text.matchAll(compared)]
    .map(([found]) => found)
    .filter((found) => !/length|typeof|"string"/.test(found));
}

describe("secrets are compared in constant time", () => {
  it.each([
    "packages/core/src/signature/hmac.ts",
    "packages/core/src/http/work-route.ts",
    "packages/core/src/sources/hmac.ts",
    "packages/core/src/sources/other-verifiers.ts",
  ])("by timingSafeEqual in %s, and by no operator", (path) => {
    expect(textOf(path)).toContain("timingSafeEqual(");
    expect(leakyComparisons(textOf(path))).toEqual([]);
  });

  it("wherever an HMAC or a hash of a secret is made, unless it is only an id, or signs a message that we send", () => {
    const hashing = sources
      .filter(({ text }) => /createHmac\(|timingSafeEqual\(/.test(text))
      .map(({ path }) => path);
    expect(hashing.sort()).toEqual([
      "packages/core/src/alerts/webhook.ts",
      "packages/core/src/http/work-route.ts",
      "packages/core/src/seal/labels.ts",
      "packages/core/src/signature/hmac.ts",
      "packages/core/src/signature/keys.ts",
      "packages/core/src/sources/hmac.ts",
      "packages/core/src/sources/other-verifiers.ts",
      "packages/core/src/testing/signers.ts",
      "packages/core/src/testing/source-signers.ts",
    ]);
  });

  it.each(["packages/core/src/signature/hmac.ts", "packages/core/src/sources/hmac.ts"])(
    "with every secret: the loop over them in %s has no way out",
    (path) => {
      const loop = /for \(const candidate of secrets\) \{([\s\S]*?)\n {2}\}/.exec(textOf(path))?.[1];
      expect(loop).toContain("timingSafeEqual");
      expect(loop).not.toMatch(/\b(?:break|return|continue|throw)\b/);
    },
  );

  it("which this test would notice if it were not so", () => {
    for (const leaky of ["if (digest === header) return", "return claimed !== digest;", 'a.mac === "x"']) {
      expect(leakyComparisons(leaky)).not.toEqual([]);
    }
    expect(leakyComparisons("if (secret === null) return; if (signature === undefined) {}")).toEqual([]);
  });
});
