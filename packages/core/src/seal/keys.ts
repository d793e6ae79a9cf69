import { createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import type { UndatedNotice } from "../notices/notice.ts";
import { invalidOptionError, isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { emptyContext } from "../time/async-context.ts";
import { callWithDeadline, TIME_IS_UP } from "../time/deadline.ts";
import type { Environment } from "../time/environment.ts";
import { Labels } from "./labels.ts";

/** A key that seals records. */
export interface SealKey {
  /** Says which key a record is sealed with. It is stored in the clear: up to 64 letters, digits, `.`, `-` and `_`. */
  readonly id: string;
  /** 32 random bytes. */
  readonly key: Uint8Array;
}

/** Keys that seal records: the first key seals new records, and every key opens records. */
export type SealKeys = readonly [SealKey, ...SealKey[]];

/**
 * The keys, or a function that reads them, for which it has 10 s. It is called again about once a minute, and for a
 * record whose key is not known.
 */
export type SealKeysSource = SealKeys | (() => SealKeys | Promise<SealKeys>);

/** A key as it is used. One key is derived from it to encrypt records, and another to hash labels. */
export interface DerivedKey {
  readonly id: string;
  readonly encryption: KeyObject;
  readonly labels: Labels;
}

const KEY_ID_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;
const KEY_BYTES = 32;
/** A function is asked again after this time. */
const KEY_REFRESH_MS = 60_000;
/** For keys that are not known, the function is called at most this often. */
const KEY_REREAD_PAUSE_MS = 5_000;
/** A call that takes longer has failed. Otherwise no other call would follow a call that never ends. */
const KEY_CALL_TIMEOUT_MS = 10_000;

/** The keys of one process. A key that was known once stays known until the process ends. */
export class SealKeyring {
  readonly #source: SealKeysSource;
  readonly #keysById = new Map<string, DerivedKey>();
  #current: DerivedKey | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(source: SealKeysSource) {
    this.#source = source;
    if (typeof source !== "function") this.#adopt(source);
  }

  /** The key that seals new records. Known once {@link ensureRead} has resolved. */
  get current(): DerivedKey {
    if (this.#current === null)
      throw invalidOptionError("The keys of aesGcm were not read yet.", "Wait for ready().");
    return this.#current;
  }

  /** All keys that are known. */
  get all(): readonly DerivedKey[] {
    return [...this.#keysById.values()];
  }

  find(id: string): DerivedKey | null {
    return this.#keysById.get(id) ?? null;
  }

  /** Reads the keys if they were never read. Rejects if that fails. */
  async ensureRead(environment: Environment): Promise<void> {
    if (this.#current === null) await this.#read(environment);
  }

  /** Reads the keys again if they are old. The caller does not wait for it. */
  refresh(environment: Environment, notify: (notice: UndatedNotice) => void): void {
    if (environment.monotonic() - this.#readAt >= KEY_REFRESH_MS) void this.#read(environment, notify);
  }

  /** Reads the keys again for a key that is not known, unless they were read just now. Waits for a read that is under way. */
  async refreshForUnknownKey(
    environment: Environment,
    notify: (notice: UndatedNotice) => void,
  ): Promise<void> {
    const isOld = environment.monotonic() - this.#readAt >= KEY_REREAD_PAUSE_MS;
    if (isOld || this.#reading !== null) await this.#read(environment, notify);
  }

  /** If it fails, the known keys stay, and `notify` is called. Rejects if there are none. */
  async #read(environment: Environment, notify?: (notice: UndatedNotice) => void): Promise<void> {
    const source = this.#source;
    if (typeof source !== "function") return;
    this.#reading ??= this.#callSource(source, environment, notify).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #callSource(
    source: () => SealKeys | Promise<SealKeys>,
    environment: Environment,
    notify?: (notice: UndatedNotice) => void,
  ): Promise<void> {
    this.#readAt = environment.monotonic();
    try {
      this.#adopt(
        await emptyContext.run(() =>
          callWithDeadline(environment, KEY_CALL_TIMEOUT_MS, async () => source()),
        ),
      );
    } catch (thrown) {
      const error = thrown === TIME_IS_UP ? keysTimeoutError() : thrown;
      if (this.#current === null) throw error;
      const code = isPayhooksError(error) ? error.code : "ERR_KEY_UNREADABLE";
      notify?.({ type: "keys-unreadable", option: "seal", code, error: describeError(error) });
    }
  }

  #adopt(keys: SealKeys): void {
    checkKeys(keys);
    const derivedKeys = keys.map(deriveKey);
    for (const { id, encryption } of derivedKeys) {
      // This process would continue with the old bytes, and after its restart no process could read the records that it
      // has sealed.
      if (this.#keysById.get(id)?.encryption.equals(encryption) === false) {
        throw invalidOptionError(
          `The key "${id}" of aesGcm has other bytes than before.`,
          "Give a new key an id of its own, and keep the old one.",
        );
      }
    }
    for (const key of derivedKeys) if (!this.#keysById.has(key.id)) this.#keysById.set(key.id, key);
    this.#current = this.#keysById.get(keys[0].id) ?? null;
  }
}

function deriveKey({ id, key }: SealKey): DerivedKey {
  const derive = (use: string): KeyObject =>
    createSecretKey(Buffer.from(hkdfSync("sha256", key, "payhooks", use, KEY_BYTES)));
  return { id, encryption: derive("seal records"), labels: new Labels(derive("find records")) };
}

function checkKeys(keys: SealKeys): void {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw invalidOptionError(
      "aesGcm was given no key.",
      "Give a list of { id, key }, the current key first.",
    );
  }
  const ids = new Set<string>();
  for (const sealKey of keys as readonly Partial<SealKey>[]) {
    const { id, key } = sealKey ?? {};
    if (typeof id !== "string" || !KEY_ID_PATTERN.test(id)) {
      throw invalidOptionError(
        `The id of a key of aesGcm is ${JSON.stringify(String(id).slice(0, 80))}.`,
        "Use up to 64 letters, digits, dots, - and _, such as 2026-11.",
      );
    }
    if (ids.has(id))
      throw invalidOptionError(`Two keys of aesGcm have the id "${id}".`, "Give each key its own id.");
    ids.add(id);
    if (key instanceof Uint8Array && key.byteLength === KEY_BYTES) continue;
    const shape = key instanceof Uint8Array ? `has ${key.byteLength} bytes` : "is not a Uint8Array";
    throw invalidOptionError(
      `The key "${id}" of aesGcm ${shape}.`,
      'Use 32 random bytes: Buffer.from(text, "base64") of what `openssl rand -base64 32` prints.',
    );
  }
}

function keysTimeoutError(): PayhooksError {
  return new PayhooksError("ERR_KEY_UNREADABLE", "The function of aesGcm gave no keys within 10 s.", {
    fix: "Find out why it does not answer. The secrets manager may be away.",
  });
}
