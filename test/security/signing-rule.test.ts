import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalString, verifyRsaSignature } from "@payhooks/core/signature";
import { createTestKeys, signCanonicalString } from "@payhooks/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openCallback, wireOf } from "../../packages/core/src/flows/callback.ts";
import { SPECIFIED_NAMES } from "../../packages/core/src/names/service-names.ts";
import { randomBody } from "./bodies.ts";
import { Random, seedOfRun } from "./random.ts";
import { lengthOf, report, TIMEOUT_MS } from "./report.ts";
import { canonicalOfMembers, membersOf, secondCanonicalString } from "./signing-rule.ts";

const seed = seedOfRun();

/** As it is signed: UTF-8 has no half of a surrogate pair. */
const asSigned = (canonical: string | undefined): string =>
  canonical === undefined ? "none" : Buffer.from(canonical).toString("utf8");

/** The first body on which two readers disagree, of so many, or null. */
function findDisagreement(bodies: number, read: (body: Uint8Array) => string | undefined): string | null {
  const random = new Random(seed);
  for (let tried = 0; tried < bodies; tried++) {
    const text = randomBody(random);
    const body = Buffer.from(text);
    const second = secondCanonicalString(body);
    if (asSigned(read(body)) !== asSigned(second)) return `${text}\n${read(body)}\n${second}`;
  }
  return null;
}

const canonicalOf = (body: Uint8Array): string | undefined =>
  openCallback(body, wireOf(SPECIFIED_NAMES.callback))?.canonical;

/** Ways of getting the canonical string wrong that look right on most bodies. */
const MUTANTS: readonly (readonly [string, (body: Uint8Array) => string | undefined])[] = [
  ["that keeps nulls", (body) => named(body, (fields) => fields, sorted)],
  [
    "that sorts by locale",
    (body) => named(body, withoutNulls, (names) => names.sort((a, b) => a.localeCompare(b))),
  ],
  ["that does not sort", (body) => named(body, withoutNulls, (names) => names)],
  ["that writes numbers anew", (body) => named(body, withoutNulls, sorted)],
  ["that takes the first of two values", (body) => canonicalOfMembers([...membersOf(body)].reverse())],
  ["that decodes as Latin-1", (body) => canonicalOf(Buffer.from(Buffer.from(body).toString("latin1")))],
];

type Fields = Readonly<Record<string, unknown>>;
const withoutNulls = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
const sorted = (names: string[]): string[] => names.sort();

function named(
  body: Uint8Array,
  choose: (fields: Fields) => Fields,
  order: (names: string[]) => string[],
): string {
  const fields = choose(JSON.parse(Buffer.from(body).toString("utf8")) as Fields);
  const names = order(Object.keys(fields).filter((name) => name !== "signature"));
  return names.map((name) => `${name}=${String(fields[name])}`).join("&");
}

describe(`a second implementation of the signing rule, seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
  const bodies = lengthOf(20_000, 1_000_000);
  const killed: string[] = [];
  let disagreements = 0;
  afterAll(() =>
    report({
      proof: "canonical string: two implementations",
      cases: bodies,
      forged: disagreements,
      mutants: { killed: killed.length, of: MUTANTS.length },
      note: `seed ${seed}`,
    }),
  );

  it("agrees on the canonical string of every body", () => {
    const disagreement = findDisagreement(bodies, canonicalOf);
    if (disagreement !== null) disagreements++;
    expect(disagreement).toBeNull();
  });

  it("agrees with canonicalString on bodies of text", () => {
    const random = new Random(seed);
    let tried = 0;
    for (let i = 0; i < bodies; i++) {
      const text = randomBody(random);
      const fields = Object.entries(JSON.parse(text) as Fields);
      const flat = fields.filter(([name, value]) => name !== "__proto__" && typeof value === "string");
      const body = Object.fromEntries(flat) as Record<string, string>;
      const second = secondCanonicalString(Buffer.from(JSON.stringify(body)));
      expect(asSigned(canonicalString(body))).toBe(asSigned(second));
      if (flat.length > 2) tried++;
    }
    expect(tried).toBeGreaterThan(bodies / 4);
  });

  it.each(MUTANTS)("finds out one %s", (name, mutant) => {
    expect(findDisagreement(20_000, mutant)).not.toBeNull();
    killed.push(name);
  });
});

describe(`the openssl command, seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-openssl-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const { publicKey, privateKey } = createTestKeys();
  const [keyFile, dataFile] = [join(folder, "key.pem"), join(folder, "data")];
  writeFileSync(keyFile, privateKey);
  const signatures = lengthOf(20, 1_000);

  const openssl = (canonical: string): string => {
    writeFileSync(dataFile, canonical);
    const { error, status, stdout } = spawnSync("openssl", ["dgst", "-sha256", "-sign", keyFile, dataFile]);
    if (error !== undefined) throw error;
    expect(status).toBe(0);
    return stdout.toString("base64");
  };

  it("makes the signatures that are accepted, over the second implementation's strings", () => {
    const random = new Random(seed);
    for (let tried = 0; tried < signatures; tried++) {
      const body = Buffer.from(randomBody(random));
      const signature = openssl(secondCanonicalString(body));
      const canonical = canonicalOf(body) ?? "";
      expect(signature).toBe(signCanonicalString(canonical, privateKey));
      expect(verifyRsaSignature(canonical, signature, publicKey)).toMatch(/^[0-9a-f]{16}$/);
      expect(verifyRsaSignature(`${canonical}&`, signature, publicKey)).toBeNull();
    }
    report({ proof: "signatures: the openssl command", cases: signatures, forged: 0 });
  });
});
