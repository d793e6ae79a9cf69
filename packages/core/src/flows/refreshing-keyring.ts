import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { checkNames } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";
import { type ErrorCode, isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { OneOrMore } from "../signature/keys.ts";
import { emptyContext } from "../time/async-context.ts";
import { callWithDeadline, TIME_IS_UP } from "../time/deadline.ts";
import type { Keyring, ResolvedKeys, ResolveOptions, ResolverLimits } from "./keyring.ts";

/**
 * Keys that are read again while the receiver runs, so that a rotation needs no restart. They belong to no tenant, as
 * fixed keys do. While they cannot be read, the last keys stay in use, and there is a `keys-unreadable` notice.
 *
 * @example const publicKey = { read: () => readFile("/run/secrets/pay.pem", "utf8") };
 */
export interface KeySource<Key> {
  /**
   * Reads the keys from a file, a secrets manager or anything else. Called at the start, and in the empty asynchronous context.
   */
  readonly read: (
    options: ResolveOptions,
  ) => OneOrMore<Key> | undefined | Promise<OneOrMore<Key> | undefined>;
  /** How long keys are used before they are read again, in milliseconds. Default 60,000; at least 1,000. */
  readonly everyMs?: number | undefined;
}

/** Readings begin at least this far apart. Anybody can send a delivery whose signature fits none of the keys. */
const MIN_REFRESH_PAUSE_MS = 5_000;
const DEFAULT_REFRESH_MS = 60_000;

/** True for a {@link KeySource}, and not for a key. */
export function isKeySource<Key>(value: unknown): value is KeySource<Key> {
  return typeof value === "object" && value !== null && "read" in value && typeof value.read === "function";
}

/** A keyring whose keys are read again: when they are old, and when a signature fits none of them. It has no timer. */
export function refreshingKeyring<Key, Imported extends { readonly keyId: string }>(
  source: KeySource<Key>,
  importKeys: (keys: OneOrMore<Key> | undefined) => Promise<readonly Imported[]>,
  option: string,
  { clock, acceptTimeoutMs, notify }: ResolverLimits,
): Keyring<Imported> {
  checkNames(option, source, { read: true, everyMs: true });
  const { everyMs = DEFAULT_REFRESH_MS } = source;
  checkTime(`${option}.everyMs`, everyMs);
  if (everyMs < 1_000) {
    throw new PayhooksError("ERR_OPTION_INVALID", `${option}.everyMs is ${everyMs}.`, {
      fix: "Give at least 1,000: under load, the keys are read as often as this.",
    });
  }
  let current: ResolvedKeys<Imported> | null = null;
  let reading: Promise<ResolvedKeys<Imported>> | null = null;
  /** On the monotonic clock: when the read that gave the known keys began, and when the last read after the start began. */
  let currentSince = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;

  async function read(timeoutMs: number): Promise<ResolvedKeys<Imported>> {
    const beganAt = clock.monotonic();
    const keys = await emptyContext.run(() =>
      callWithDeadline(clock, timeoutMs, async (signal) => importKeys(await source.read({ signal }))),
    );
    const previousKeys = current?.keys;
    current = { tenant: ONLY_TENANT, keys };
    currentSince = beganAt;
    const keyIds = keys.map(({ keyId }) => keyId);
    if (previousKeys !== undefined && previousKeys.map(({ keyId }) => keyId).join() !== keyIds.join()) {
      notify?.({ type: "keys-changed", option, keyIds });
    }
    return current;
  }

  /** Reads once for all deliveries that wait. If this fails, or takes too long, the answer is the last good keys. */
  function refreshKeys(lastKeys: ResolvedKeys<Imported>): Promise<ResolvedKeys<Imported>> {
    if (reading !== null) return reading;
    triedAt = clock.monotonic();
    // A delivery that waits for this must still be stored within the same limit.
    reading = read(acceptTimeoutMs / 2)
      .catch((error: unknown) => {
        notify?.({ type: "keys-unreadable", option, ...reasonOf(error) });
        return lastKeys;
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  }

  const age = (since: number): number => clock.monotonic() - since;

  return {
    usesResolver: false,
    async prepare() {
      if (current !== null) return current.keys;
      try {
        return (await read(acceptTimeoutMs)).keys;
      } catch (error) {
        if (isPayhooksError(error)) throw error;
        throw new PayhooksError("ERR_KEY_UNREADABLE", `${option} cannot be read: ${reasonOf(error).error}.`, {
          fix: "Check the file or the secrets manager that read() asks, and what this process may read there.",
          cause: error === TIME_IS_UP ? undefined : error,
        });
      }
    },
    find() {
      if (current === null) return null;
      if (age(currentSince) < everyMs) {
        // Read ahead, so that a busy receiver never waits.
        if (age(currentSince) >= everyMs / 2 && age(triedAt) >= MIN_REFRESH_PAUSE_MS)
          void refreshKeys(current);
        return current;
      }
      return (
        reading ?? (age(triedAt) < Math.min(MIN_REFRESH_PAUSE_MS, everyMs) ? current : refreshKeys(current))
      );
    },
    refresh() {
      if (current === null) return null;
      return reading ?? (age(triedAt) < MIN_REFRESH_PAUSE_MS ? null : refreshKeys(current));
    },
  };
}

function reasonOf(error: unknown): { readonly code: ErrorCode; readonly error: string } {
  if (error === TIME_IS_UP) return { code: "ERR_KEY_UNREADABLE", error: "no answer in time" };
  return { code: isPayhooksError(error) ? error.code : "ERR_KEY_UNREADABLE", error: describeError(error) };
}
