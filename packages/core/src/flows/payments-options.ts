import type { FieldName, ServiceNames } from "../names/options.ts";
import { checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import {
  importPublicKeys,
  type OneOrMore,
  type PublicKeyInput,
  type PublicKeySource,
  type VerifyingKey,
} from "../signature/keys.ts";
import { type CallbackRules, wireOf } from "./callback.ts";
import type { KeepOptions } from "./keep-options.ts";
import type { Keys } from "./keys.ts";

/** The values that signed fields must have. They are compared as a whole. */
export interface PaymentExpectations {
  readonly merchantId?: string | readonly string[] | undefined;
  readonly callbackUrl?: string | readonly string[] | undefined;
}

/** Options of the payments flow. */
export interface PaymentsOptions {
  /**
   * The merchant's public key: PEM (line ends may be written as `\n`, quotes and base64 of it are accepted too), a
   * `KeyObject` or `{ file }`. A list of up to four during a rotation. `{ read }`, which is called again. A resolver
   * for many merchants.
   */
  readonly publicKey: Keys<PublicKeySource>;
  /** Signed fields whose value is known. An authentic callback with another value is held as `unexpected`. */
  readonly expect?: PaymentExpectations | undefined;
  /** A second SUCCESS for a reference, under another payTxnId, is held as `reference-reused`. Default false. */
  readonly oneSuccessPerReference?: boolean | undefined;
  /** Keeps the signed text after the event's end, so that the event can be run again. Default: it is dropped. */
  readonly keep?: KeepOptions | undefined;
}

/** Imports keys. Keys in files are read first. */
export async function importKeys(
  keys: OneOrMore<PublicKeySource> | undefined,
  option: string,
): Promise<readonly VerifyingKey[]> {
  return importPublicKeys(await readFiles(keys, option), option);
}

async function readFiles(
  source: OneOrMore<PublicKeySource> | undefined,
  option: string,
): Promise<readonly PublicKeyInput[] | undefined> {
  if (source === undefined || source === null) return undefined;
  const list = Array.isArray(source) ? (source as readonly PublicKeySource[]) : [source as PublicKeySource];
  return Promise.all(list.map((key) => readFileOf(key, option)));
}

async function readFileOf(source: PublicKeySource, option: string): Promise<PublicKeyInput> {
  if (typeof source !== "object" || source === null || !("file" in source)) return source as PublicKeyInput;
  // Imported here, because not every runtime has a file system.
  const { readFile } = await import("node:fs/promises");
  try {
    return await readFile(source.file, "utf8");
  } catch (cause) {
    throw new PayhooksError(
      "ERR_KEY_UNREADABLE",
      `${option} names the file ${JSON.stringify(source.file)}, which cannot be read.`,
      {
        fix: "Check the path and its permissions; it is relative to the process's working directory.",
        cause,
      },
    );
  }
}

/** Throws if an expected value is not set. Most often its environment variable is missing then. */
export function checkExpectations({ expect = {} }: PaymentsOptions): void {
  for (const [name, value] of Object.entries(expect)) {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) {
      const shownValue = value === undefined ? "undefined" : "an empty list";
      throw new PayhooksError("ERR_OPTION_MISSING", `payments.expect.${name} is ${shownValue}.`, {
        fix: "Check that the environment variable is set. Leave the option out to expect nothing.",
      });
    }
  }
}

/** The rules for bodies that the options set. Throws their set-up error. */
export function rulesOf(
  { expect }: Pick<PaymentsOptions, "expect">,
  { callback }: ServiceNames,
  isMerchantIdRequired: boolean,
): CallbackRules {
  checkNames<PaymentExpectations>("payments.expect", expect ?? {}, { merchantId: true, callbackUrl: true });
  const pinnedUrls = setOf(expect?.callbackUrl, "payments.expect.callbackUrl");
  for (const url of pinnedUrls) {
    if (!URL.canParse(url)) {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        `payments.expect.callbackUrl has ${JSON.stringify(url)}, which is not an absolute URL.`,
        {
          fix: "Give the whole callback_url as you send it to the service.",
        },
      );
    }
    if (url.includes("&callbackUrl=")) {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        'payments.expect.callbackUrl has a URL that contains "&callbackUrl=", so it could hide another one.',
        {
          fix: "Use a callback URL without that parameter.",
        },
      );
    }
    for (const otherUrl of pinnedUrls) {
      if (otherUrl.startsWith(`${url}&`)) {
        throw new PayhooksError(
          "ERR_OPTION_INVALID",
          'payments.expect.callbackUrl has a URL that begins with another one and "&", so it could be cut down to that one.',
          {
            fix: "Use callback URLs that differ in their path.",
          },
        );
      }
    }
  }
  const pinnedMerchantIds = setOf(expect?.merchantId, "payments.expect.merchantId");
  const { callbackUrl, merchantId } = callback.fields;
  if (pinnedUrls.size > 0) checkFieldIsSent("callbackUrl", callbackUrl, "payments.expect.callbackUrl");
  if (pinnedMerchantIds.size > 0) checkFieldIsSent("merchantId", merchantId, "payments.expect.merchantId");
  if (isMerchantIdRequired) checkFieldIsSent("merchantId", merchantId, "A resolver as payments.publicKey");
  return {
    wire: wireOf(callback),
    pinnedUrls,
    isMerchantIdRequired,
    pinnedMerchantIds,
    isCallbackUrlRequired: true,
  };
}

function checkFieldIsSent(field: string, { sent }: FieldName, feature: string): void {
  if (sent !== "absent") return;
  throw new PayhooksError("ERR_NAMES_INVALID", `${feature} needs ${field}, which the names call absent.`, {
    fix: `Leave one of the two out: without ${field} every callback would be held.`,
  });
}

function setOf(value: string | readonly string[] | undefined, option: string): ReadonlySet<string> {
  const list: readonly unknown[] = value === undefined ? [] : typeof value === "string" ? [value] : value;
  if (!Array.isArray(list) || list.some((item) => typeof item !== "string" || item === "")) {
    throw new PayhooksError("ERR_OPTION_INVALID", `${option} has an entry that is empty or not text.`, {
      fix: "Check that the environment variable is set. Leave the option out to expect nothing.",
    });
  }
  return new Set(list as readonly string[]);
}
