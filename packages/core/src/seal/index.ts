/**
 * Seals the contents of an inbox: AES-256-GCM, with keys that can be changed while receivers run.
 *
 * @module
 */

import type { Seal } from "../inbox/contract/seal.ts";
import type { RecordStore } from "../inbox/contract/store.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { environmentOf } from "../time/environment.ts";
import { SealKeyring, type SealKeysSource } from "./keys.ts";
import { type ResealOptions, type ResealReport, resealRecords } from "./reseal.ts";
import { SealedStore } from "./sealed-store.ts";

export type { Seal } from "../inbox/contract/seal.ts";
export type { SealKey, SealKeys, SealKeysSource } from "./keys.ts";
export type { ResealOptions, ResealReport } from "./reseal.ts";

/** The result of {@link aesGcm}: the option `seal` of an inbox. */
export interface AesGcmSeal extends Seal {
  /**
   * Seals anew each record that has another key than the current one, or that is stored in the clear. Receivers may run
   * meanwhile. If it was stopped, call it again: it skips the records that it has sealed.
   *
   * @param store the store itself, open
   * @throws PayhooksError `ERR_INBOX_UNAVAILABLE` if the store does not take the writes, or what reading the keys throws.
   */
  reseal(store: RecordStore, options?: ResealOptions): Promise<ResealReport>;
}

/**
 * Seals records with AES-256-GCM: signed texts, ids, references, error texts and histories. The labels by which events are found
 * become keyed hashes. The first key seals new records, and every key opens those that were sealed with it.
 *
 * @param keys the current key first, then older ones; or a function that reads them, which is called again about once a minute
 * @throws PayhooksError `ERR_OPTION_INVALID` for a key that is not 32 bytes, or an id that is not possible or comes
 * twice. Keys of a function are checked at the start, which fails with `ERR_KEY_UNREADABLE` if it does not answer
 * within 10 s.
 * @example sqliteInbox("payhooks.db", { seal: aesGcm([{ id: "2026-11", key }]) })
 */
export function aesGcm(keys: SealKeysSource): AesGcmSeal {
  const keyring = new SealKeyring(keys);
  return {
    wrap: (store, environment, notify = () => {}) => {
      if (store.endsWithProcess === true) {
        throw new PayhooksError("ERR_OPTION_INVALID", "An inbox in memory cannot be sealed.", {
          fix: "Nothing of it is ever stored. Leave out `seal`.",
        });
      }
      return new SealedStore(store, keyring, environmentOf(environment), notify);
    },
    reseal: (store, options) => resealRecords(store, keyring, options),
  };
}
