/**
 * The inbox for Cloudflare Workers: the SQLite storage of a Durable Object, whose alarm runs what is due.
 *
 * @module
 */

import type { Inbox } from "../inbox/contract/inbox.ts";
import type { Seal } from "../inbox/contract/seal.ts";
import { createInbox } from "../inbox/engine.ts";
import { checkNames } from "../protocol/check-names.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import type { ObjectStorage } from "./storage.ts";
import { DurableObjectStore } from "./store.ts";

export type { ObjectStorage } from "./storage.ts";

/** Options of {@link durableObjectInbox}. */
export interface DurableObjectInboxOptions {
  /** How long a run may be silent before its event is run again. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** Seals the stored data: `aesGcm` of `@payhooks/core/seal`. Default: it is stored in the clear. */
  readonly seal?: Seal | undefined;
  /** For tests: a clock, or everything that the inbox takes from outside. */
  readonly clock?: Clock | Environment | undefined;
}

/**
 * An inbox in the SQLite storage of a Durable Object. The object receives the deliveries, and an acknowledged event
 * survives whatever its storage survives. The inbox uses the object's alarm: it is set to the time at which the next
 * event is due. Let the `alarm()` of the object's class call {@link workAtAlarm}.
 *
 * @param storage `ctx.storage` of the object, whose class has SQLite storage.
 * @throws PayhooksError at `ready()`: `ERR_SQLITE_UNSUITABLE`.
 * @example createReceiver({ payments: { publicKey }, inbox: durableObjectInbox(ctx.storage) })
 */
export function durableObjectInbox(storage: ObjectStorage, options: DurableObjectInboxOptions = {}): Inbox {
  checkNames("durableObjectInbox", options, { leaseMs: true, seal: true, clock: true });
  const { leaseMs, seal, clock } = options;
  const environment = environmentOf(clock);
  return createInbox(new DurableObjectStore(storage, environment), { leaseMs, seal, clock: environment });
}

/** How long after a failed alarm the next one comes. */
const FAILED_ALARM_RETRY_MS = 60_000;

/**
 * Runs the events that are due, for the `alarm()` of the object's class. Resolves when that has ended, and never
 * rejects: the platform gives up an alarm that fails several times. So an error, such as that of a wrong set-up, is
 * logged, and the next alarm comes in a minute.
 *
 * @example alarm(): Promise<void> { return workAtAlarm(this.#receiver, this.#storage); }
 */
export async function workAtAlarm(
  receiver: { work(): Promise<unknown> },
  storage: Pick<ObjectStorage, "setAlarm">,
): Promise<void> {
  try {
    await receiver.work();
  } catch (error) {
    console.error(
      `payhooks: the alarm could not run what is due: ${describeError(error)}. It comes again in a minute.`,
    );
    await storage.setAlarm(Date.now() + FAILED_ALARM_RETRY_MS);
  }
}
