import { CALLBACK_FIELDS, importPublicKeys } from "@payhooks/core/signature";
import { asDelivery, createTestKeys, signCanonicalString } from "@payhooks/core/testing";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { systemClock } from "../../packages/core/src/clock.ts";
import type { Verification } from "../../packages/core/src/flows/flow.ts";
import { fixedKeys } from "../../packages/core/src/flows/keyring.ts";
import { paymentsFlow } from "../../packages/core/src/flows/payments.ts";
import { accepts, type Body, findFault, hostile, MUTANTS } from "./oracle.ts";
import { seedOfRun } from "./random.ts";
import { lengthOf, report, TIMEOUT_MS } from "./report.ts";

const seed = seedOfRun();

describe(`the rules, against every body of a canonical string, seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
  const killed: string[] = [];
  let readings = 0;
  let strings = 0;
  let forged = 0;
  const count = (bodies: number): void => {
    readings += bodies;
    strings++;
  };
  afterAll(() =>
    report({
      proof: "oracle: every body of a canonical string",
      cases: strings,
      forged,
      mutants: { killed: killed.length, of: MUTANTS.length },
      note: `${readings.toLocaleString("en")} readings, seed ${seed}`,
    }),
  );

  it("let only bodies run that say what any genuine one says", () => {
    let accepted = 0;
    fc.assert(
      fc.property(hostile, (canonical) => {
        const fault = findFault(
          canonical,
          (body) => {
            const given = accepts(body);
            if (given !== null) accepted++;
            return given;
          },
          { count },
        );
        if (fault !== null) forged++;
        expect(fault).toBeNull();
      }),
      { numRuns: lengthOf(1_500, 50_000), seed },
    );
    // The search is worth something only if the rules let enough through.
    expect(accepted).toBeGreaterThan(25);
  });

  it.each(MUTANTS)("a mutant %s is caught", (name, wrong) => {
    const run = fc.check(
      fc.property(hostile, (canonical) => findFault(canonical, wrong) === null),
      { numRuns: 100_000, endOnFailure: true, seed },
    );
    expect(run.failed, `seed ${run.seed}: no fault found in ${run.numRuns} strings`).toBe(true);
    killed.push(name);
  });

  it("with real signatures: of all bodies with one signature, those that are accepted agree", () => {
    const { publicKey, privateKey } = createTestKeys();
    const keys = fixedKeys(importPublicKeys(publicKey));
    const unlimited = { windowMs: Number.POSITIVE_INFINITY, clock: systemClock };
    const flow = paymentsFlow({ publicKey: undefined }, unlimited, keys);
    let accepted = 0;
    let refused = 0;
    const verify = (body: Body, signature: string): Body | null => {
      const { rawBody } = asDelivery({ ...body, signature });
      const delivery = { method: "POST", url: "/", headers: { get: () => null }, rawBody };
      const verification = flow.verify(delivery, 0) as Verification;
      // Whatever is wrong with them, the signature fits: they are held, not refused.
      if (!verification.ok) throw new Error(`${verification.code}: ${JSON.stringify(body)}`);
      const { event, verified } = verification.reading;
      if (event === null || verified.verdict !== "run") {
        refused++;
        return null;
      }
      accepted++;
      const given = event as unknown as Readonly<Record<string, string>>;
      return Object.fromEntries(
        CALLBACK_FIELDS.flatMap((name) => {
          const text = given[name];
          if (text === undefined) return [];
          expect(text).toBe(body[name]);
          return [[name, text]];
        }),
      );
    };
    fc.assert(
      fc.property(hostile, (canonical) => {
        const signature = signCanonicalString(canonical, privateKey);
        const every = canonical.split("&").length <= 8;
        const fault = findFault(canonical, (body) => verify(body, signature), { every, count });
        if (fault !== null) forged++;
        expect(fault).toBeNull();
      }),
      { numRuns: lengthOf(300, 10_000), seed },
    );
    expect(accepted).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(100);
  });
});
