import type { Receiver, ReceiverOptions } from "@payhooks/core";
import { type Environment, tokenMaker } from "../../packages/core/src/time/environment.ts";
import { silent } from "../support/silent.ts";
import type { Closing } from "./chronicle.ts";
import type { Core } from "./core.ts";
import { deliveryOf, EPOCH, keyObjects as keys } from "./deliveries.ts";
import type { PlannedFault } from "./faults.ts";
import type { Links } from "./links.ts";
import { type MerchantProcess, register } from "./merchant-process.ts";
import type { Operation, PlannedEvent } from "./plan.ts";
import { sealKeysOf } from "./sealed.ts";
import { type LinkedProcess, linkTo } from "./store-link.ts";
import type { World } from "./world.ts";
import { isFinal, recordOf } from "./written.ts";

const OPTIONS: Readonly<Record<Operation, Pick<ReceiverOptions, "run" | "ack">>> = {
  background: { run: "background" },
  handled: { run: "background", ack: "handled" },
  "after-response": { run: "after-response" },
  cron: { run: "elsewhere" },
};

export interface ProcessOptions {
  readonly number: number;
  /** Counts the lives of the process: each is a process of its own. */
  readonly life: number;
  readonly handlerSet: number;
  /** A fault happened to this process, or to everything. */
  suffer(process: SimulatedProcess, fault: PlannedFault): void;
}

/** One process of the merchant: a real receiver with a real engine, on clocks and ways that are simulated. */
export class SimulatedProcess implements LinkedProcess, MerchantProcess {
  readonly name: string;
  readonly number: number;
  readonly handlerSet: number;
  readonly isNewVersion: boolean;
  isAlive = true;
  frozenUntil = 0;
  cutOffUntil = 0;
  /** How far its wall clock is from the right time. */
  wallOffsetMs: number;
  /** How long its machine has slept; its monotonic clock lags by this much. */
  sleptMs = 0;
  closing: Closing | null = null;
  readonly clock: Environment;
  readonly receiver: Receiver;
  readonly #world: World;
  readonly #suffer: ProcessOptions["suffer"];

  constructor(world: World, core: Core, links: Links, options: ProcessOptions) {
    const { number, life, handlerSet } = options;
    this.#world = world;
    this.#suffer = options.suffer;
    this.number = number;
    this.name = `p${number}.${life}`;
    this.handlerSet = handlerSet;
    // The first process already has the new version; the others get it when they start again.
    this.isNewVersion = world.plan.mixesFormats && (number === 0 || life > 0);
    this.wallOffsetMs = Math.floor(world.dice.between(-50, 50, "wall", number, life));
    world.chronicle.handlerSets.set(this.name, handlerSet);
    const environment = this.#environment();
    this.clock = environment;
    const { leaseMs, pollMs, concurrency, operation } = world.plan;
    this.receiver = core.createReceiver({
      payments: { publicKey: keys.publicKey, oneSuccessPerReference: world.plan.sharesReferences },
      connect: { secret: keys.secret },
      inbox: core.createInbox(linkTo(world, links, this), {
        leaseMs,
        pollMs,
        clock: environment,
        seal: world.plan.isSealed ? core.aesGcm(sealKeysOf(number)) : undefined,
      }),
      ...OPTIONS[operation],
      ...(world.plan.hasEffects && {
        effects: core.effectsOn(world.database.clientOf(this), {}, environment),
      }),
      concurrency,
      logger: silent,
      logLevel: "error",
      clock: environment,
    });
    register(world, core, this, this.receiver);
    this.receiver.observe((notice) => {
      if (!this.isAlive) return;
      world.chronicle.notices.push({ at: this.#time, process: this.name, notice });
      if (notice.type !== "double-risk" || notice.why !== "timeout") return;
      for (const call of world.chronicle.calls) {
        if (call.process === this.name && call.eventId === notice.eventId) call.timedOut ||= call.to === null;
      }
    });
  }

  /** The true time as this process sees it: while it is frozen, its time stops. */
  get #time(): number {
    return Math.max(this.#world.timeline.now, this.frozenUntil);
  }

  get #monotonic(): number {
    return this.#time - this.sleptMs + 1_000 * (1 + this.number);
  }

  #environment(): Environment {
    const world = this.#world;
    const { timeline } = world;
    return {
      now: () => {
        world.meet("clock", "before", this);
        const now = Math.floor(EPOCH + this.#time + this.wallOffsetMs);
        world.meet("clock", "after", this);
        return now;
      },
      monotonic: () => this.#monotonic,
      after: (ms, callback) => this.#after(Math.max(0, ms), callback),
      nextTurn: (callback) => timeline.nextTurn(this, callback),
      keepAlive: () => () => {},
      token: tokenMaker(`${this.name.replace(".", "-")}-`.padEnd(9, "-")),
    };
  }

  /** Timers use the clock that stops while the machine sleeps. */
  #after(ms: number, callback: () => void): () => void {
    const world = this.#world;
    const due = this.#monotonic + ms;
    let cancel = (): void => {};
    const set = (inMs: number): void => {
      cancel = world.timeline.at(this.#time + inMs, this, () => {
        const leftMs = due - this.#monotonic;
        if (leftMs > 0.001) {
          set(leftMs);
          return;
        }
        const callFault = world.meet("timer", "before", this);
        if (!this.isAlive) return;
        if (callFault === "late" || this.frozenUntil > world.timeline.now) {
          set(callFault === "late" ? 100 : 0);
          return;
        }
        callback();
        world.meet("timer", "after", this);
      });
    };
    set(ms);
    return () => cancel();
  }

  suffer(fault: PlannedFault): void {
    this.#suffer(this, fault);
  }

  /** Starts it, once. If the store is away, or a fault meets it, the receiver tries again by itself. */
  start(): void {
    this.receiver.start().catch(() => {});
  }

  die(): void {
    this.isAlive = false;
    this.#world.database.drop(this);
    for (const call of this.#world.chronicle.calls) {
      if (call.process !== this.name || call.to !== null) continue;
      call.to = this.#time;
      call.end = "died";
    }
  }

  /** Closes the receiver, and exits when that has closed, as an orderly process does. */
  close(graceMs: number, exited: () => void): void {
    if (this.closing !== null) return;
    const { chronicle, timeline } = this.#world;
    const closing: Closing = { process: this.name, at: this.#time, graceMs, closedAt: null };
    this.closing = closing;
    chronicle.closings.push(closing);
    chronicle.log(timeline.now, this.name, () => `closes, with ${graceMs} ms of grace`);
    const exit = (): void => {
      closing.closedAt = this.#time;
      chronicle.log(timeline.now, this.name, () => "has closed");
      // The callers of `close` get its result before the process exits.
      timeline.nextTurn(this, () => {
        this.die();
        exited();
      });
    };
    this.receiver.close({ graceMs }).then(exit, exit);
  }

  /** Runs the due events, for a cron job. */
  work(deadlineMs: number): void {
    const { chronicle, timeline } = this.#world;
    chronicle.log(timeline.now, this.name, () => "is called by the cron job");
    // It rejects while the store is away, or once the receiver closes: the next call does the work.
    this.receiver.work({ deadlineMs }).catch(() => {});
  }

  /** Takes a delivery, and answers with a status. */
  async receive(event: PlannedEvent): Promise<number> {
    const { delivery, eventId, variantId } = deliveryOf(event);
    const { chronicle, timeline } = this.#world;
    const askedAt = this.#time;
    const { status } = await this.receiver[event.flow].receive(delivery, { mounted: true });
    const record = recordOf(this.#world, eventId.slice(0, 32));
    const slots = [eventId, variantId].map((id) => record?.slots[id.slice(32)]);
    const isRecorded = slots.some((slot) => slot !== undefined);
    const isOver = slots.some((slot) => slot !== undefined && isFinal(slot.state));
    const isPast = record?.isClosed === true && event.status === "PENDING";
    const standing = isOver ? "over" : isRecorded ? "recorded" : isPast ? "past" : "missing";
    if (this.isAlive) {
      const at = this.#time;
      chronicle.answers.push({ at, askedAt, process: this.name, event, status, standing });
      chronicle.log(timeline.now, this.name, () => `answers event ${event.number} with ${status}`);
    }
    return status;
  }
}
