import type { IdempotencyRecord } from "@payhooks/core/inbox";
import { isCanary } from "../../packages/core/src/inbox/record/canary.ts";
import { Chronicle } from "./chronicle.ts";
import type { Core } from "./core.ts";
import { SimulatedDatabase } from "./database.ts";
import { Dice } from "./dice.ts";
import { type CallFault, isCallFault, nameOf, type PlannedFault, type Site } from "./faults.ts";
import { Links } from "./links.ts";
import { HANDLER_SETS } from "./merchant-process.ts";
import type { Plan } from "./plan.ts";
import { SimulatedProcess } from "./process.ts";
import { recordIn } from "./sealed.ts";
import { Sender } from "./sender.ts";
import { SimulatedStore } from "./store.ts";
import { LATE_MS } from "./store-link.ts";
import { applySystemFault } from "./system-faults.ts";
import { Timeline } from "./timeline.ts";
import { type Coverage, storeNow, type World } from "./world.ts";

/** A history that is not at rest after this time will not come to rest. */
const LIMIT_MS = 120_000;
/** Every late call and answer has arrived after this time. */
const QUIET_MS: number = Math.max(...LATE_MS) + 500;
/** A deploy is over by then: the cron job no longer calls processes that cannot read the records of others. */
const DEPLOYED_MS = 60_000;
const GRACE_MS = 2_000;
/** How often the cron job calls, and for how long it lets a process work. */
const CRON_MS = 700;

/** Plays a plan to its end. */
export async function play(
  plan: Plan,
  core: Core,
  coverage: Coverage,
  withStory = false,
): Promise<Chronicle> {
  const { stackTraceLimit } = Error;
  // Nobody reads the stacks of a history's errors, and to write them takes longer than all the rest.
  Error.stackTraceLimit = 0;
  try {
    const history = new History(plan, core, coverage, withStory);
    await history.play();
    return history.world.chronicle;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Right before, or right after, a call. */
interface Place {
  met: number;
  readonly faults: Map<number, PlannedFault>;
}

class History {
  readonly world: World;
  readonly #core: Core;
  readonly #coverage: Coverage;
  readonly #links: Links;
  readonly #processes: SimulatedProcess[] = [];
  readonly #sender: Sender;
  /** Decisions that were given to a process and are not carried out yet. */
  readonly #deciding = new Set<{ readonly process: SimulatedProcess }>();
  /** For each site: how often a process has come to it, and its planned faults by the number of the visit. */
  readonly #places = { before: new Map<Site, Place>(), after: new Map<Site, Place>() };
  #isEnding = false;
  /** Decisions whose time has not come. */
  #undecided = 0;

  constructor(plan: Plan, core: Core, coverage: Coverage, withStory: boolean) {
    const timeline = new Timeline();
    const counts = new Map<string, number>();
    const clocks = { timeline, storeOffsetMs: 0 };
    const store = new SimulatedStore({
      now: () => storeNow(this.world ?? clocks),
      keepsTexts: plan.keepsTexts,
    });
    const dice = new Dice(plan.seed);
    const chronicle = new Chronicle(plan, withStory);
    this.world = {
      plan,
      dice,
      timeline,
      store,
      chronicle,
      database: new SimulatedDatabase({ dice, timeline, chronicle, maxWaitMs: 2 * plan.leaseMs }),
      meet: (site, phase, process) => this.#meet(site, phase, process as SimulatedProcess),
      count: (what) => {
        const count = counts.get(what) ?? 0;
        counts.set(what, count + 1);
        return count;
      },
      storeOffsetMs: 0,
      storeDownUntil: 0,
      storeEpoch: 0,
      newFormats: new Set(),
      marks: [],
    };
    this.#core = core;
    this.#coverage = coverage;
    this.#links = new Links(this.world);
    this.#sender = new Sender(this.world, () => this.#processes);
    for (const fault of plan.faults) {
      const phase = fault.phase === "after" && !isCallFault(fault.what) ? "after" : "before";
      this.#placeOf(fault.site, phase).faults.set(fault.nth, fault);
    }
  }

  async play(): Promise<void> {
    const { plan, timeline, dice, chronicle } = this.world;
    for (let number = 0; number < plan.processes; number++) this.#start(number, 0);
    this.#begin(0);
    if (plan.operation === "after-response" || plan.operation === "cron") this.#beginCron();
    let isReached = await this.#rest();
    for (const [number, pauseMs] of plan.pausesMs.entries()) {
      if (!isReached) break;
      timeline.pass(pauseMs);
      chronicle.log(timeline.now, "", () => `${pauseMs / 86_400_000} days have passed`);
      this.#begin(number + 1);
      isReached = await this.#rest();
    }
    this.#isEnding = true;
    if (isReached && dice.chance(0.3, "replayed log")) {
      this.#sender.sendAllAgain();
      isReached = await this.#rest();
    }
    for (const process of this.#processes) if (process.isAlive) process.close(GRACE_MS, () => {});
    await timeline.play(
      () => this.#processes.every(({ isAlive }) => !isAlive),
      timeline.now + GRACE_MS + QUIET_MS,
    );
    const records = new Map<string, IdempotencyRecord>();
    for (const { key } of this.world.store.rows()) {
      const record = recordIn(this.world.store, key);
      if (record !== null && !isCanary(key)) records.set(key, record);
    }
    const { unacknowledged } = this.#sender;
    chronicle.rest = { isReached, at: timeline.now, now: storeNow(this.world), records, unacknowledged };
  }

  /** Begins a period: the events and decisions between two pauses. */
  #begin(period: number): void {
    const { plan, timeline } = this.world;
    this.#sender.begin(period);
    for (const decision of plan.decisions) {
      if (decision.period !== period) continue;
      this.#undecided++;
      timeline.at(timeline.now + decision.at, null, () => {
        this.#undecided--;
        void this.#decide(decision);
      });
    }
  }

  /** Runs everything until nothing is left to run. False: that took too long. */
  #rest(): Promise<boolean> {
    const { timeline } = this.world;
    let since: number | null = null;
    return timeline.play(() => {
      if (!this.#isAtRest()) since = null;
      else since ??= timeline.now;
      return since !== null && timeline.now - since >= QUIET_MS;
    }, timeline.now + LIMIT_MS);
  }

  #start(number: number, life: number): void {
    const { dice, timeline, chronicle, plan } = this.world;
    const handlerSet = plan.mixesHandlers
      ? number % HANDLER_SETS
      : dice.whole(0, HANDLER_SETS - 1, "version", number, life);
    const process = new SimulatedProcess(this.world, this.#core, this.#links, {
      number,
      life,
      handlerSet,
      suffer: (sufferer, fault) => this.#strike(sufferer, fault),
    });
    this.#processes[number] = process;
    chronicle.log(timeline.now, process.name, () => `starts, with version ${handlerSet} of the handlers`);
    process.start();
  }

  /** A cron job calls one of the processes again and again. */
  #beginCron(): void {
    const { timeline, dice, count } = this.world;
    timeline.at(timeline.now + CRON_MS, null, () => {
      const deployed = this.#processes.filter((one) => one?.isNewVersion === true);
      const isDeployed = timeline.now > DEPLOYED_MS && deployed.length > 0;
      const called = isDeployed ? deployed : this.#processes;
      const process = called[dice.whole(0, called.length - 1, "cron", count("cron jobs"))];
      if (process?.isAlive && process.closing === null) process.work(CRON_MS);
      this.#beginCron();
    });
  }

  /** True if nothing is under way, no process is away, and no event waits. */
  #isAtRest(): boolean {
    const { timeline, store, storeDownUntil } = this.world;
    const { now } = timeline;
    if (now < Math.max(storeDownUntil, 3_000) || !this.#sender.isThrough) return false;
    if (this.#undecided > 0) return false;
    for (const { process } of this.#deciding) if (process.isAlive) return false;
    const isWell = ({ isAlive, frozenUntil, cutOffUntil, closing }: SimulatedProcess): boolean =>
      isAlive && frozenUntil <= now && cutOffUntil <= now && closing === null;
    if (!this.#processes.every(isWell)) return false;
    // There is always another canary, so they do not count. All other due records have to be run before there is rest.
    for (const { key, index } of store.rows()) if (index.dueAt !== null && !isCanary(key)) return false;
    return true;
  }

  #placeOf(site: Site, phase: "before" | "after"): Place {
    const places = this.#places[phase];
    let place = places.get(site);
    if (place === undefined) {
      place = { met: 0, faults: new Map() };
      places.set(site, place);
    }
    return place;
  }

  #meet(site: Site, phase: "before" | "after", process: SimulatedProcess): CallFault | null {
    if (this.#isEnding) return null;
    const place = this.#placeOf(site, phase);
    const nth = ++place.met;
    const fault = place.faults.get(nth);
    if (fault === undefined || !process.isAlive) return null;
    const { chronicle, timeline } = this.world;
    const name = nameOf(fault);
    this.#coverage.set(name, (this.#coverage.get(name) ?? 0) + 1);
    chronicle.log(timeline.now, process.name, () => `!! ${name} (${nth})`);
    if (!isCallFault(fault.what)) {
      process.suffer(fault);
      return null;
    }
    const { now } = timeline;
    chronicle.faults.push({ at: now, until: now, what: fault.what, where: site, process: process.name });
    return fault.what;
  }

  #strike(process: SimulatedProcess, fault: PlannedFault): void {
    const { dice, timeline } = this.world;
    const [number, life] = process.name.slice(1).split(".").map(Number) as [number, number];
    const restart = (): void => {
      const inMs = dice.between(30, 1_500, "restart", number, life);
      timeline.at(timeline.now + inMs, null, () => this.#start(number, life + 1));
    };
    applySystemFault(this.world, process, fault, restart);
  }

  async #decide({ number, what, isForAll }: Plan["decisions"][number]): Promise<void> {
    const { dice, chronicle, timeline, store } = this.world;
    const process = this.#processes[dice.whole(0, this.#processes.length - 1, "decides", number)];
    if (process === undefined || !process.isAlive) return;
    const held: string[] = [];
    for (const { index } of store.rows()) {
      for (const { eventId, state } of index.events) if (state === "held") held.push(eventId);
    }
    const one = held[dice.whole(0, held.length - 1, "decided", number)];
    const deciding = { process };
    this.#deciding.add(deciding);
    for (const eventId of isForAll || one === undefined ? held : [one]) {
      chronicle.decisions.push({ at: timeline.now, what, eventId });
      chronicle.log(timeline.now, process.name, () => `is told to ${what} ${eventId.slice(0, 6)}`);
      await process.receiver.events[what](eventId, { by: "somebody", note: "simulated" }).catch(() => {});
    }
    this.#deciding.delete(deciding);
  }
}
