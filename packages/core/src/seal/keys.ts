import { createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import type { UndatedNotice } from "../notices/notice.ts";
import { invalidOption, isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { emptyContext } from "../time/async-context.ts";
import { callWithTimeout, TIME_IS_UP } from "../time/deadline.ts";
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

const ID = /^[A-Za-z0-9._-]{1,64}$/;
const KEY_BYTES = 32;
/** A function is asked again after this time. */
const EVERY_MS = 60_000;
/** For keys that are not known, the function is called at most this often. */
const AT_MOST_MS = 5_000;
/** A call that takes longer has failed. Otherwise no other call would follow a call that never ends. */
const CALL_MS = 10_000;

/** The keys of one process. A key that was known once stays known until the process ends. */
export class SealKeyring {
  readonly #source: SealKeysSource;
  readonly #known = new Map<string, DerivedKey>();
  #current: DerivedKey | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(source: SealKeysSource) {
    this.#source = source;
    if (typeof source !== "function") this.#take(source);
  }

  /** The key that seals new records. Known once {@link ready} has resolved. */
  get current(): DerivedKey {
    if (this.#current === null)
      throw invalidOption("The keys of aesGcm were not read yet.", "Wait for ready().");
    return this.#current;
  }

  /** All keys that are known. */
  get all(): readonly DerivedKey[] {
    return [...this.#known.values()];
  }

  find(id: string): DerivedKey | null {
    return this.#known.get(id) ?? null;
  }

  /** Reads the keys if they were never read. Rejects if that fails. */
  async ready(environment: Environment): Promise<void> {
    if (this.#current === null) await this.#read(environment);
  }

  /** Reads the keys again if they are old. The caller does not wait for it. */
  refresh(environment: Environment, notify: (notice: UndatedNotice) => void): void {
    if (environment.monotonic() - this.#readAt >= EVERY_MS) void this.#read(environment, notify);
  }

  /** Reads the keys again for a key that is not known, unless they were read just now. Waits for a read that is under way. */
  async seek(environment: Environment, notify: (notice: UndatedNotice) => void): Promise<void> {
    const isOld = environment.monotonic() - this.#readAt >= AT_MOST_MS;
    if (isOld || this.#reading !== null) await this.#read(environment, notify);
  }

  /** If it fails, the known keys stay, and `notify` is called. Rejects if there are none. */
  async #read(environment: Environment, notify?: (notice: UndatedNotice) => void): Promise<void> {
    const source = this.#source;
    if (typeof source !== "function") return;
    this.#reading ??= this.#call(source, environment, notify).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #call(
    source: () => SealKeys | Promise<SealKeys>,
    environment: Environment,
    notify?: (notice: UndatedNotice) => void,
  ): Promise<void> {
    this.#readAt = environment.monotonic();
    try {
      this.#take(await emptyContext.run(() => callWithTimeout(environment, CALL_MS, async () => source())));
    } catch (thrown) {
      const error = thrown === TIME_IS_UP ? tooLate() : thrown;
      if (this.#current === null) throw error;
      const code = isPayhooksError(error) ? error.code : "ERR_KEY_UNREADABLE";
      notify?.({ type: "keys-unreadable", option: "seal", code, error: describeError(error) });
    }
  }

  #take(keys: SealKeys): void {
    check(keys);
    const taken = keys.map(derived);
    for (const { id, encryption } of taken) {
      // This process would continue with the old bytes, and after its restart no process could read the records that it
      // has sealed.
      if (this.#known.get(id)?.encryption.equals(encryption) === false) {
        throw invalidOption(
          `The key "${id}" of aesGcm has other bytes than before.`,
          "Give a new key an id of its own, and keep the old one.",
        );
      }
    }
    for (const key of taken) if (!this.#known.has(key.id)) this.#known.set(key.id, key);
    this.#current = this.#known.get(keys[0].id) ?? null;
  }
}

function derived({ id, key }: SealKey): DerivedKey {
  const derive = (use: string): KeyObject =>
    createSecretKey(Buffer.from(hkdfSync("sha256", key, "payhooks", use, KEY_BYTES)));
  return { id, encryption: derive("seal records"), labels: new Labels(derive("find records")) };
}

function check(keys: SealKeys): void {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw invalidOption("aesGcm was given no key.", "Give a list of { id, key }, the current key first.");
  }
  const ids = new Set<string>();
  for (const given of keys as readonly Partial<SealKey>[]) {
    const { id, key } = given ?? {};
    if (typeof id !== "string" || !ID.test(id)) {
      throw invalidOption(
        `The id of a key of aesGcm is ${JSON.stringify(String(id).slice(0, 80))}.`,
        "Use up to 64 letters, digits, dots, - and _, such as 2026-11.",
      );
    }
    if (ids.has(id))
      throw invalidOption(`Two keys of aesGcm have the id "${id}".`, "Give each key its own id.");
    ids.add(id);
    if (key instanceof Uint8Array && key.byteLength === KEY_BYTES) continue;
    const shape = key instanceof Uint8Array ? `has ${key.byteLength} bytes` : "is not a Uint8Array";
    throw invalidOption(
      `The key "${id}" of aesGcm ${shape}.`,
      'Use 32 random bytes: Buffer.from(text, "base64") of what `openssl rand -base64 32` prints.',
    );
  }
}

function tooLate(): PayhooksError {
  return new PayhooksError("ERR_KEY_UNREADABLE", "The function of aesGcm gave no keys within 10 s.", {
    fix: "Find out why it does not answer. The secrets manager may be away.",
  });
}
