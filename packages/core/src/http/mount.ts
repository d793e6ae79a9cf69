import { consoleLogger } from "../notices/logger.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import type { Delivery, Reply } from "../protocol/delivery.ts";
import { type DeliveryErrorCode, isSetupError } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import type { Endpoint } from "../receiver/endpoint.ts";
import { type AnyReceiver, endpointOf } from "../receiver/receiver.ts";
import { pauseAfter } from "../receiver/start-retry.ts";
import { emptyContext } from "../time/async-context.ts";
import { Cancellation } from "../time/cancellation.ts";
import { systemClock } from "../time/clock.ts";
import { environmentOf } from "../time/environment.ts";
import { isShared } from "./shared-receiver.ts";

/**
 * A receiver, or a factory of one, for platforms whose environment is available later or comes with the request
 * (Workers). A factory is called once in the life of the process, even if several mounts share it.
 */
export type ReceiverOrFactory<Platform = void, Mounted extends AnyReceiver = AnyReceiver> =
  | Mounted
  | ((platform: Platform) => Mounted | Promise<Mounted>);

/** Why an adapter could not get a body's exact bytes. `why` goes to the log only. */
export interface BodyFault {
  readonly code: DeliveryErrorCode;
  readonly why: string;
}

/** One request, whose body was not read yet. */
export interface IncomingRequest extends Omit<Delivery, "rawBody"> {
  /**
   * The exact bytes of the body, at most `maxBodyBytes` of them, or why they are not available. Never rejects. After a
   * cancellation, the result is ignored.
   */
  readBody(maxBodyBytes: number, cancellation: Cancellation): Promise<Uint8Array | BodyFault>;
}

/** A flow that is mounted. */
export interface MountedFlow<Platform = void> {
  /** Answers one request. Rejects only if the factory does. */
  answer(incoming: IncomingRequest, platform: Platform): Promise<Reply>;
  /**
   * For servers that keep running: starts the receiver in the next turn of the event loop, when its handlers are
   * registered. The error of a wrong set-up is thrown uncaught, so that the process ends at boot and shows the fix.
   * After any other error, such as an inbox that cannot be reached, the start is repeated until it succeeds or the
   * receiver is closed.
   */
  startSoon(platform: Platform): void;
}

const MOUNTED_OPTIONS = { mounted: true } as const;

/** Receivers by the factory that made them. */
const receivers = new WeakMap<object, Promise<AnyReceiver>>();

/**
 * Mounts a flow. `check` throws if the platform cannot do what the receiver's options ask for.
 *
 * @throws PayhooksError if a receiver, and not a factory, is given: `ERR_FLOW_OFF` if this flow of it is off,
 * `ERR_SOURCE_UNKNOWN` if it has no such source, and what `check` throws.
 */
export function mountFlow<Platform = void>(
  receiverOrFactory: ReceiverOrFactory<Platform>,
  flow: FlowName,
  check: (endpoint: Endpoint) => void = () => {},
): MountedFlow<Platform> {
  if (typeof receiverOrFactory !== "function") check(endpointOf(receiverOrFactory, flow));

  return {
    async answer(incoming, platform) {
      const receiver =
        typeof receiverOrFactory === "function"
          ? await receiverOf(receiverOrFactory, platform)
          : receiverOrFactory;
      const endpoint = endpointOf(receiver, flow);
      if (typeof receiverOrFactory === "function") check(endpoint);
      const { method, url, headers, remoteAddress, tenant, waitUntil } = incoming;
      const earlyReply = endpoint.check(incoming, remoteAddress);
      if (earlyReply !== null) return earlyReply;
      const rawBody = await readBodyInTime(incoming, endpoint);
      if (!(rawBody instanceof Uint8Array)) return endpoint.refuse(rawBody.code, rawBody.why, remoteAddress);
      return endpoint.receive(
        { method, url, headers, remoteAddress, tenant, waitUntil, rawBody },
        MOUNTED_OPTIONS,
      );
    },
    startSoon(platform) {
      environmentOf().nextTurn(() => void startReceiver(receiverOrFactory, flow, platform));
    },
  };
}

/**
 * Makes the receiver and starts it. A factory that fails is called again after a pause. The receiver itself repeats its start.
 */
async function startReceiver<Platform>(
  receiverOrFactory: ReceiverOrFactory<Platform>,
  flow: FlowName,
  platform: Platform,
): Promise<void> {
  const { after, token } = environmentOf();
  let lastError = "";
  for (let failures = 0; ; failures++) {
    let receiver: AnyReceiver | null = null;
    try {
      receiver = await receiverOf(receiverOrFactory, platform);
      void endpointOf(receiver, flow);
      await receiver.start();
    } catch (error) {
      if (isSetupError(error)) environmentOf().nextTurn(() => throwUncaught(error));
      // If the receiver exists, it has posted a notice of its own.
      else if (receiver === null) {
        const facts = factsOfThrown(error);
        if (facts.error !== lastError)
          consoleLogger.error("no receiver was made; this is tried again", facts);
        lastError = facts.error;
        await new Promise<void>((resolve) => after(pauseAfter(failures, token()), resolve));
        continue;
      }
    }
    return;
  }
}

/** Waits for the body for at most `bodyTimeoutMs`. */
function readBodyInTime(
  incoming: IncomingRequest,
  { maxBodyBytes, bodyTimeoutMs }: Endpoint,
): Promise<Uint8Array | BodyFault> {
  const cancellation = new Cancellation();
  return new Promise((resolve, reject) => {
    const cancelTimer = systemClock.after(bodyTimeoutMs, () => {
      const why = `the body was not complete after ${bodyTimeoutMs} ms`;
      resolve({ code: "ERR_BODY_TIMEOUT", why });
      cancellation.cancel(new Error(why));
    });
    incoming.readBody(maxBodyBytes, cancellation).then(
      (body) => {
        cancelTimer();
        resolve(body);
      },
      (error: unknown) => {
        cancelTimer();
        reject(error);
      },
    );
  });
}

/** The receiver itself, or what its factory makes. */
export async function receiverOf<Platform>(
  receiverOrFactory: ReceiverOrFactory<Platform>,
  platform: Platform,
): Promise<AnyReceiver> {
  if (typeof receiverOrFactory !== "function") return receiverOrFactory;
  return isShared(receiverOrFactory) ? receiverOrFactory(platform) : makeOnce(receiverOrFactory, platform);
}

function makeOnce<Platform>(
  factory: (platform: Platform) => AnyReceiver | Promise<AnyReceiver>,
  platform: Platform,
): Promise<AnyReceiver> {
  const knownReceiver = receivers.get(factory);
  if (knownReceiver !== undefined) return knownReceiver;
  const making = emptyContext.run(async () => factory(platform));
  receivers.set(factory, making);
  making.catch(() => receivers.delete(factory));
  return making;
}

function throwUncaught(error: unknown): never {
  throw error;
}
