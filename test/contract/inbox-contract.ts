/**
 * The contract of every inbox (docs/concepts/deduplication.md and docs/concepts/inbox.md). A store's own test file gives it an
 * `InboxFixture`: fresh data each time, on which the suite starts as many processes as it likes, each with an inbox on that
 * store.
 *
 * The parts of a fixture:
 *
 * - `open()` gives the store of one more process on the same data. With a server behind, each has its own connections,
 *   and `cut()` breaks them at once, as the process's death would.
 * - `clock` and the store's own clock show the same time, and `advance(ms)` moves both. Where the store's clock can be
 *   injected, give a `fakeClock` and `timeTravel: true`. Where time is real, `advance` waits: give a short `leaseMs`
 *   (a few hundred milliseconds), since the cases measure time in leases and never wait for anything else.
 *
 * Processes die, freeze or lose their connection before and after each call of the store: see `inbox-processes.ts`.
 */
import { describe, it } from "vitest";
import { afterTheEndCases } from "./after-the-end-cases.ts";
import { beginCases } from "./begin-cases.ts";
import { contextCases } from "./context-cases.ts";
import { crashCases } from "./crash-cases.ts";
import { deployCases } from "./deploy-cases.ts";
import { eventHistoryCases } from "./event-history-cases.ts";
import { expiryCases } from "./expiry-cases.ts";
import { fairnessCases } from "./fairness-cases.ts";
import { heldCases } from "./held-cases.ts";
import type { ContractCase, FixtureKind, MakeFixture } from "./inbox-processes.ts";
import { leaseCases } from "./lease-cases.ts";
import { markHandledCases } from "./mark-handled-cases.ts";
import { referenceCases } from "./reference-cases.ts";
import { retryCases } from "./retry-cases.ts";
import { retryNowCases } from "./retry-now-cases.ts";
import { sharedTextCases } from "./shared-text-cases.ts";
import { subjectCases } from "./subject-cases.ts";
import { tableCases } from "./table-cases.ts";
import { watchCases } from "./watch-cases.ts";
import { workCases } from "./work-cases.ts";
import { writeCases } from "./write-cases.ts";

/** Every behaviour, by name; `mutants.test.ts` runs them against inboxes that must fail them. */
export const contractCases: readonly ContractCase[] = [
  ...tableCases,
  ...referenceCases,
  ...subjectCases,
  ...leaseCases,
  ...crashCases,
  ...beginCases,
  ...writeCases,
  ...retryCases,
  ...retryNowCases,
  ...heldCases,
  ...markHandledCases,
  ...afterTheEndCases,
  ...deployCases,
  ...expiryCases,
  ...workCases,
  ...fairnessCases,
  ...eventHistoryCases,
  ...watchCases,
  ...sharedTextCases,
  ...contextCases,
];

/**
 * The contract without the longest runs of the table. Enough for a store whose calls take their time: what they compare
 * is the engine's to decide, the same one above every store, and memory has them all.
 */
export const casesOfSlowStores: readonly ContractCase[] = contractCases.filter(
  ({ long }) => long === undefined,
);

/** True if a case is meant for this kind of fixture. */
export function isFor({ timeTravel, only }: ContractCase, kind: FixtureKind): boolean {
  if (timeTravel !== undefined && !kind.timeTravel) return false;
  if (only === undefined) return true;
  if (only === "stays-awake") return !kind.endsWithProcess && kind.sleeps !== true;
  return kind.endsWithProcess === (only === "ends-with-process");
}

/**
 * Declares a test for each case that is meant for the fixture; `concurrent` where time is real, and the cases wait for
 * most of it.
 */
export function inboxContract(
  name: string,
  make: MakeFixture,
  kind: FixtureKind,
  {
    cases = contractCases,
    concurrent = false,
  }: { readonly cases?: readonly ContractCase[]; readonly concurrent?: boolean } = {},
): void {
  describe(`the inbox contract: ${name}`, () => {
    for (const contractCase of cases) {
      if (!isFor(contractCase, kind)) continue;
      it(contractCase.name, { timeout: 180_000, concurrent }, () => contractCase.run(make));
    }
  });
}
