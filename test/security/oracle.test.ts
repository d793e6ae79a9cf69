import { CALLBACK_FIELDS, importPublicKeys } from "@payhooks/core/signature";
import { asDelivery, createTestKeys, signCanonicalString } from "@payhooks/core/testing";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import type { Verification } from "../../packages/core/src/flows/flow.ts";
import { callbackJudge } from "../../packages/core/src/flows/judgement.ts";
import { fixedKeyring, type Keyring } from "../../packages/core/src/flows/keyring.ts";
import { paymentsFlow } from "../../packages/core/src/flows/payments.ts";
import type { VerifyingKey } from "../../packages/core/src/signature/keys.ts";
import { systemClock } from "../../packages/core/src/time/clock.ts";
import {
  anyRules,
  type Believes,
  type Body,
  believes,
  findFault,
  findForgery,
  genuineOf,
  hostileTo,
  MUTANTS,
  type Rules,
  rulesOf,
  SETTINGS,
  withoutNames,
} from "./oracle.ts";
import { seedOfRun } from "./random.ts";
import { lengthOf, report, TIMEOUT_MS } from "./report.ts";

const seed = seedOfRun();

describe(`the judgement, against every body of a canonical string, seed ${seed}`, {
  timeout: TIMEOUT_MS,
}, () => {
  const killed: string[] = [];
  let bodies = 0;
  let strings = 0;
  let forged = 0;
  const count = (arriving: number): void => {
    bodies += arriving;
    strings++;
  };
  /** Judges strings, and counts what is run: the search is worth something only if enough is. */
  const counted = () => {
    let run = 0;
    const counting: Believes = (...given) => {
      const answer = believes(...given);
      if (typeof answer !== "string") run++;
      return answer;
    };
    const judge = (canonical: string, rules: Rules): void => {
      const fault = findFault(canonical, rules, counting, { count });
      if (fault !== null) forged++;
      expect(fault).toBeNull();
    };
    return { run: () => run, judge };
  };
  afterAll(() =>
    report({
      proof: "oracle: every body of a canonical string",
      cases: strings,
      forged,
      mutants: { killed: killed.length, of: MUTANTS.length },
      note: `${bodies.toLocaleString("en")} bodies, seed ${seed}`,
    }),
  );

  it.each(SETTINGS)("believes the values in which all of them agree, no more and no less, %s", (_, rules) => {
    const { run, judge } = counted();
    fc.assert(
      fc.property(hostileTo(rules), (canonical) => judge(canonical, rules)),
      { numRuns: lengthOf(600, 10_000), seed },
    );
    expect(run()).toBeGreaterThan(100);
  });

  it("believes the values in which all of them agree, whatever is declared, pinned or asked for", () => {
    const { run, judge } = counted();
    fc.assert(
      fc.property(
        anyRules.chain((rules) => fc.tuple(fc.constant(rules), hostileTo(rules))),
        ([rules, canonical]) => judge(canonical, rules),
      ),
      { numRuns: lengthOf(1_500, 30_000), seed },
    );
    expect(run()).toBeGreaterThan(100);
  });

  it.each([
    ["an extra field", "with a declared field", "with a field that is sent sometimes"],
    [
      "an optional field",
      "with a brand's name for the id, and providerTxId always sent",
      "with a brand's name for the id",
    ],
  ])(
    "is only as true as the merchant's word: %s that is called always sent, and is not, can be forged",
    (_, said, sent) => {
      const word = rulesOf(said);
      const truth = rulesOf(sent);
      const run = fc.check(
        fc.property(
          hostileTo(truth),
          (canonical) =>
            findFault(canonical, truth, (body) => believes(body, word), { exact: false }) === null,
        ),
        { numRuns: 20_000, endOnFailure: true, seed },
      );
      expect(run.failed, `seed ${run.seed}`).toBe(true);
    },
  );

  it.each(SETTINGS)("believes no forgery where the service writes a field in another way, %s", (_, rules) => {
    fc.assert(
      fc.property(hostileTo(rules), (canonical) => {
        strings++;
        const forgery = findForgery(canonical, rules, believes);
        if (forgery !== null) forged++;
        expect(forgery).toBeNull();
      }),
      { numRuns: lengthOf(300, 5_000), seed },
    );
  });

  it.each(SETTINGS)(
    "has the genuine id among its candidates otherwise, if they are complete, %s",
    (_, rules) => {
      let complete = 0;
      const idName = rules.names.callback.fields.payTxnId.name;
      fc.assert(
        fc.property(hostileTo(rules), (canonical) => {
          strings++;
          const judgement = callbackJudge(rules)(canonical);
          if (judgement.kind !== "ambiguous") return;
          const { ids = [], complete: isComplete = false } = judgement.candidates ?? {};
          const sent = (deviating: boolean) =>
            genuineOf(canonical, rules, deviating).map((body) => body[idName] ?? "");
          expect(ids).toEqual(expect.arrayContaining(sent(false)));
          if (!isComplete) return;
          complete++;
          expect(ids).toEqual(expect.arrayContaining(sent(true)));
        }),
        { numRuns: lengthOf(300, 5_000), seed },
      );
      expect(complete).toBeGreaterThan(20);
    },
  );

  it("would then believe a forgery if it did not look for names that stand twice", () => {
    const rules = rulesOf("by default");
    const run = fc.check(
      fc.property(hostileTo(rules), (canonical) => findForgery(canonical, rules, withoutNames) === null),
      { numRuns: 20_000, endOnFailure: true, seed },
    );
    expect(run.failed, `seed ${run.seed}`).toBe(true);
  });

  it.each(MUTANTS)("catches a receiver %s", (name, wrong, rules) => {
    const run = fc.check(
      fc.property(
        hostileTo(rules),
        (canonical) => findFault(canonical, rules, wrong, { exact: false }) === null,
      ),
      { numRuns: 20_000, endOnFailure: true, seed },
    );
    expect(run.failed, `seed ${run.seed}: no fault found in ${run.numRuns} strings`).toBe(true);
    killed.push(name);
  });

  it.each(SETTINGS)("is the same with real signatures, %s", (_, rules) => {
    const { publicKey, privateKey } = createTestKeys();
    const fixed = fixedKeyring(importPublicKeys(publicKey));
    const { keys } = fixed.find({}) as { readonly keys: readonly VerifyingKey[] };
    // As a resolver that knows every merchant, and has one key for all of them.
    const resolving: Keyring<VerifyingKey> = {
      ...fixed,
      usesResolver: true,
      find: ({ merchantId = "" }) => ({ tenant: merchantId, keys }),
    };
    const none = Number.POSITIVE_INFINITY;
    const flow = paymentsFlow(
      {
        publicKey: undefined,
        expect: {
          ...(rules.pinnedUrls.size > 0 ? { callbackUrl: [...rules.pinnedUrls] } : {}),
          ...(rules.pinnedMerchantIds.size > 0 ? { merchantId: [...rules.pinnedMerchantIds] } : {}),
        },
      },
      { windowMs: none, acceptTimeoutMs: none, maxResolving: none, clock: systemClock, names: rules.names },
      rules.isMerchantIdRequired ? resolving : fixed,
    );
    const verify = (body: Body, signature: string): ReturnType<Believes> => {
      const { rawBody } = asDelivery({ ...body, signature });
      const delivery = { method: "POST", url: "/", headers: { get: () => null }, rawBody };
      const verification = flow.verify(delivery, 0) as Verification;
      if (!verification.ok) {
        // A resolver was asked for another merchant than the one that was signed.
        if (rules.isMerchantIdRequired && verification.why.includes("merchantId")) return "ambiguous";
        throw new Error(`${verification.code}: ${JSON.stringify(body)}`);
      }
      const { event, verified } = verification.reading;
      if (event === null || verified.verdict !== "run") return "ambiguous";
      if (rules.isMerchantIdRequired) expect(verified.delivery.tenant).toBe(verified.fixedFacts.merchantId);
      const { extra, ...given } = event as unknown as Body & { readonly extra: Body };
      const documented = CALLBACK_FIELDS.flatMap((name) =>
        given[name] === undefined ? [] : [[name, given[name]]],
      );
      const { callbackUrl, ...others } = Object.fromEntries(documented);
      return { ...others, ...(callbackUrl === "" ? {} : { callbackUrl }), ...extra };
    };
    fc.assert(
      fc.property(hostileTo(rules), (canonical) => {
        const signature = signCanonicalString(canonical, privateKey);
        const fault = findFault(canonical, rules, (body) => verify(body, signature), { exact: false, count });
        if (fault !== null) forged++;
        expect(fault).toBeNull();
      }),
      { numRuns: lengthOf(60, 1_000), seed },
    );
  });
});
