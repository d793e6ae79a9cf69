/** Mistakes that the invariants must find. Each one replaces a piece of the core by a plausible wrong one. */
import type { Replacement } from "./core.ts";
import { IN_DOUBT, type Size } from "./plan.ts";

export interface Mutant {
  readonly name: string;
  readonly changes: readonly Replacement[];
  /** The size of the histories that show the mistake soonest. Default: the usual size. */
  readonly size?: Size;
}

function mutant(name: string, file: string, find: string, put: string): Mutant {
  return { name, changes: [{ file, find, put }] };
}

const RECORDS = "inbox/write/records.ts";
const BATCHED = "inbox/write/batched-store.ts";
const ACCEPTOR = "inbox/accept/acceptor.ts";
const RUNS = "inbox/run/runs.ts";
const RUN = "inbox/run/run.ts";
const LEASE_TIME = "inbox/run/lease-time.ts";
const RECORD_RUN = "inbox/record/leased-run.ts";
const ACCEPT = "inbox/record/accept-into-record.ts";
const TABLE = "inbox/record/table.ts";
const SCHEDULE = "inbox/record/schedule.ts";
const RUNNER = "receiver/runner.ts";
const HANDLER_CALL = "receiver/handler-call.ts";
const SUBJECT = "inbox/record/subject.ts";
const REFERENCE_CLAIM = "inbox/record/reference-claim.ts";

export const MUTANTS: readonly Mutant[] = [
  // The order of a subject's events.
  mutant(
    "an older event runs after a newer one",
    SUBJECT,
    'if (at < storedRecord.signedAt) return refuse("overtaken");',
    "if (at < storedRecord.signedAt) at = storedRecord.signedAt;",
  ),
  mutant(
    "two events of a subject run at the same time",
    SUBJECT,
    'if (isHeldByAnother && (isOther || isOfLaterRun)) return refuse("busy");',
    'if (isHeldByAnother && isOfLaterRun) return refuse("busy");',
  ),
  mutant(
    "an event runs without the lease of its subject",
    "receiver/runner.ts",
    "if (subjectOutcome !== null) return subjectOutcome;",
    "void subjectOutcome;",
  ),
  // Writing.
  mutant(
    "a write with an unknown outcome counts as made",
    RECORDS,
    'if (result.kind === "unknown") isUnclear = true;',
    'if (result.kind === "unknown") return { kind: "written", isUnclear };',
  ),
  mutant(
    "a write that was not made counts as made",
    RECORDS,
    "await pause(result.cause, until);\n          break;",
    "return { answer: computed.answer(), version };",
  ),
  mutant(
    "a write that conflicts counts as made",
    RECORDS,
    'case "compute":\n              attempts++;',
    'case "compute":\n              return { answer: computed.answer(), version };',
  ),
  {
    name: "a process does not recognise its own write",
    size: IN_DOUBT,
    changes: [
      {
        file: RECORDS,
        find: 'if (result.kind === "conflict" && result.current?.version === item.version) {',
        put: 'if (result.kind === "conflict" && result.current?.version === "") {',
      },
      {
        file: RECORD_RUN,
        find: "return runToken === token || runToken === endedTokenOf(token);",
        put: "return false;",
      },
    ],
  },
  {
    name: "a run whose end may be stored posts a double-risk notice",
    size: IN_DOUBT,
    changes: [
      {
        file: RECORD_RUN,
        find: "if (record?.slots[slotKey]?.runToken === endedTokenOf(token)) {",
        put: "if (token === null) {",
      },
      {
        file: RUN,
        find: 'if (mayHaveEnded && !this.#lease.isOver) this.#phase = "lost";\n    else this.#lose(lossReason);',
        put: "void mayHaveEnded;\n    this.#lose(lossReason);",
      },
    ],
  },
  mutant(
    "the answers to a batch are returned in the order of the keys",
    BATCHED,
    "for (const writing of batch) writing.resolve(resultOf.get(writing) ?? NO_ANSWER_RESULT);",
    "batch.forEach((writing, at) => writing.resolve(results[at] ?? NO_ANSWER_RESULT));",
  ),
  // Accepting.
  mutant(
    "a 200 does not wait for the replicas",
    ACCEPTOR,
    "if (version !== null) await",
    "if (version === null) await",
  ),
  mutant(
    "an acceptance that began nothing keeps its place",
    ACCEPTOR,
    "if (run !== null && !isBegun(result?.answer)) await this.#runs.giveUp(run);",
    "",
  ),
  mutant(
    "an accepted event that was not begun is never due",
    ACCEPT,
    "dueAt: now + delayMs,\n      originalDelayMs: delayMs,",
    "dueAt: now + 1e9, originalDelayMs: 1e9,",
  ),
  // Leases.
  mutant(
    "every process takes any lease for its own",
    RECORD_RUN,
    "lease.slot === slotKey && lease.token === token ?",
    "lease.slot === slotKey ?",
  ),
  {
    name: "a lease ends at once",
    changes: [
      { file: RECORD_RUN, find: "record.lease.until > now)", put: "record.lease.until < 0)" },
      { file: RECORD_RUN, find: "record.lease.until > options.now)", put: "record.lease.until < 0)" },
    ],
  },
  {
    name: "a lease never ends",
    changes: [
      { file: RECORD_RUN, find: "record.lease.until > now)", put: "record.lease.until > 0)" },
      { file: RECORD_RUN, find: "record.lease.until > options.now)", put: "record.lease.until > 0)" },
    ],
  },
  mutant(
    "a record is not due when its lease has ended",
    SCHEDULE,
    "  if (lease !== null)\n    return {\n",
    "  if (lease !== null) return null;\n  if (lease !== null)\n    return {\n",
  ),
  mutant(
    "an event stays running after its lease has ended",
    RECORD_RUN,
    'if (slot?.state === "running") {\n    slot.state = "waiting";',
    'if (slot?.state === "running") {',
  ),
  mutant("leases are not renewed", RUNS, "void run.renew();", ""),
  mutant(
    "a renewal does not prolong the lease",
    RECORD_RUN,
    "record.lease.until = now + leaseMs;\n  record.lease.originalLengthMs = leaseMs;\n  return true;",
    "return true;",
  ),
  mutant(
    "a handler is called even if its lease has ended",
    LEASE_TIME,
    "return this.elapsedMs + this.#updateBehindMs() >= this.lengthMs;",
    "return false;",
  ),
  mutant(
    "a lease is measured from the answer to its write, not from the request",
    LEASE_TIME,
    "this.#dependencies.recordLatency(this.elapsedMs);",
    "this.#lastWrite = this.startWrite();",
  ),
  mutant(
    "a lease is measured by a clock that stops while the machine sleeps",
    "time/clock.ts",
    "return Math.max(this.#clock.now() - this.#wallStart, this.#clock.monotonic() - this.#monotonicStart);",
    "return this.#clock.monotonic() - this.#monotonicStart;",
  ),
  // The end of a run.
  mutant(
    "a retry is due an hour late",
    RECORD_RUN,
    "work.dueAt = now + delayMs;\n  work.originalDelayMs = delayMs;",
    "work.dueAt = now + delayMs + 3_600_000;\n  work.originalDelayMs = delayMs + 3_600_000;",
  ),
  mutant(
    "a PENDING that waits is not overtaken",
    ACCEPT,
    "if (rank === 0) return NONE_OVERTAKEN;",
    "if (record !== null) return NONE_OVERTAKEN;",
  ),
  mutant(
    "a handler that throws counts as done",
    HANDLER_CALL,
    "if (outcome.ok) {",
    "if (outcome !== null) {",
  ),
  mutant(
    "a handler that is done runs again",
    HANDLER_CALL,
    'if (state?.state === "done") return "done";',
    "",
  ),
  mutant(
    "the end of a handler is not stored",
    HANDLER_CALL,
    `progress.unwrittenChanges.push({
        name,
        kind: "done",
        attempt,
        ...(skippedCount > 0 && { skipped: skippedCount }),
      });`,
    "",
  ),
  mutant(
    "the start of a handler is not stored",
    HANDLER_CALL,
    'await run.write([...changes, { name, kind: "started", attempt }])',
    "await run.write(changes)",
  ),
  mutant(
    "there is no notice that a handler may run twice",
    HANDLER_CALL,
    'if (hasDied) notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(run.input) });',
    "",
  ),
  mutant(
    "a handler that must not run twice is stored as started when its run begins",
    RUNNER,
    'if (handler.onCrash === "hold" || handler.maxAttempts === 1 || handler.callLimit !== null) return null;',
    "if (handler.callLimit !== null) return null;",
  ),
  mutant(
    "a handler that must not run twice runs again after a death",
    HANDLER_CALL,
    'if (hasDied && (handler.onCrash === "hold" || attempts >= handler.maxAttempts)) {',
    "if (hasDied && attempts >= handler.maxAttempts) {",
  ),
  mutant(
    "a handler has only one attempt",
    HANDLER_CALL,
    "const isExhausted = !isEarly && isCounted && attempt >= handler.maxAttempts;",
    "const isExhausted = !isEarly && isCounted;",
  ),
  // The table.
  mutant(
    "fixed facts are not compared",
    TABLE,
    "if (factsDiffer(record.fixedFacts, event.fixedFacts)) {",
    "if (record === null) {",
  ),
  mutant(
    "a second terminal status is not a conflict",
    TABLE,
    "if (!record.isClosed && event.rank > rank) {",
    "if (event.rank === 1) {",
  ),
  mutant(
    "a PENDING that arrives too late is run",
    TABLE,
    "if (event.rank < rank) return",
    "if (record === null) return",
  ),
  {
    name: "a copy revives a held event",
    changes: [
      {
        file: ACCEPT,
        find: 'const work = slot.state === "held" ? slot.work : null;',
        put: 'const work = slot.state === "held" ? slot.work : null; if (work !== null) { slot.state = "waiting"; work.dueAt = 0; }',
      },
      {
        file: ACCEPT,
        find: "record: isLater || isChanged ? changedRecord : null };",
        put: "record: changedRecord };",
      },
    ],
  },
  mutant(
    "a handler is called without a check of the store's clock",
    LEASE_TIME,
    "return Math.max(0, this.#dependencies.store.now(this.#key) - (this.#endsAt - this.lengthMs));",
    "return 0;",
  ),
  mutant(
    "there is no notice that a removed handler may have run",
    RUNNER,
    "if (Object.entries(input.handlerStates).some(mayHaveRun)) {",
    "if (Object.entries(input.handlerStates).every(mayHaveRun) && input.mode === null) {",
  ),
  // References.
  mutant(
    "a replayed SUCCESS does not claim its reference",
    RUNNER,
    "if (verified.referenceKey !== null && !run.input.claims.includes(verified.referenceKey)) {",
    "if (verified.referenceKey === null) {",
  ),
  mutant(
    "a claim expires although its record has an unfinished event",
    REFERENCE_CLAIM,
    "return claims !== undefined && isFinished(record) ?",
    "return claims !== undefined ?",
  ),
  mutant(
    "a claim is not prolonged with its record",
    REFERENCE_CLAIM,
    "if (before === null) return NO_CLAIMS;",
    "if (before !== undefined) return NO_CLAIMS;",
  ),
  // Effects.
  mutant(
    "an effect is committed a second time",
    "effects/transaction.ts",
    'if (insertedEffect.found === "done") return { ran: false, value: undefined };',
    'if (insertedEffect.found === "done") return { ran: true, value: await this.#callFunction(tx) };',
  ),
  mutant(
    "an effect has another id in each run",
    "effects/run.ts",
    "return effectIdIn(scope, effectId, name);",
    'return effectIdIn(scope, effectId, name ?? "at" + String(now));',
  ),
  mutant(
    "a transaction with a failed statement counts as committed",
    "effects/transaction.ts",
    "isDone = await this.#client.finish(tx, this.#id, insertedEffect);",
    "isDone = await this.#client.finish(tx, this.#id, insertedEffect).catch(() => true);",
  ),
  // Answers.
  mutant(
    "an event is acknowledged before it is handled",
    "receiver/intake.ts",
    'return refuse("ERR_NOT_HANDLED", `the event',
    'if (whenHandled !== undefined) return acceptedReply; else return refuse("ERR_NOT_HANDLED", `the event',
  ),
];
