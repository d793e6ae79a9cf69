import { parseSecureUrl, parseUrl } from "../address.ts";
import { ClientError } from "../errors.ts";
import { isObject } from "../json.ts";
import { kindOf } from "../kind-of.ts";
import type { RequestRules } from "./rules.ts";

/** The currencies of the specification. */
export const CURRENCIES = ["ETB", "USD"] as const;

/** `ETB` (local) or `USD` (international). */
export type Currency = (typeof CURRENCIES)[number];

export function currencyText(currency: unknown): string {
  if (!(CURRENCIES as readonly unknown[]).includes(currency)) {
    throw new ClientError(
      "ERR_CURRENCY_INVALID",
      `currency is ${typeof currency === "string" ? JSON.stringify(currency.slice(0, 40)) : kindOf(currency)}.`,
      { fix: 'Use "ETB" or "USD".', field: "currency" },
    );
  }
  return JSON.stringify(currency);
}

/** The country code comes first. One space may follow it, as in the specification. E.164 allows at most 15 digits. */
const PHONE_NUMBER_PATTERN = /^[1-9][0-9]{0,2} ?[0-9]+$/;

/**
 * A phone number as JSON text, without the space, which services refuse in requests. Errors do not repeat it, since it
 * is personal data.
 */
export function phoneNumberText(phone: unknown): string {
  const phoneNumberError = (problem: string, fix: string): ClientError =>
    new ClientError("ERR_PHONE_NUMBER_INVALID", problem, { fix, field: "phone_number" });
  if (typeof phone !== "string")
    throw phoneNumberError(`phone_number is ${kindOf(phone)}.`, "Pass it as a string.");
  if (phone.startsWith("+")) throw phoneNumberError('phone_number begins with "+".', 'Leave the "+" off.');
  if (phone.startsWith("0")) {
    throw phoneNumberError(
      'phone_number begins with "0".',
      'Begin with the country code, such as "251911000000".',
    );
  }
  const digits = phone.replace(" ", "").length;
  if (!PHONE_NUMBER_PATTERN.test(phone) || digits < 7 || digits > 15) {
    throw phoneNumberError(
      "phone_number is not 7 to 15 digits with at most one space, after the country code.",
      'Write the country code and the number, such as "251911000000" or "251 911000000".',
    );
  }
  return JSON.stringify(phone.replace(" ", ""));
}

/** The callback address as JSON text, unchanged (specification: "Callback addresses must use HTTPS"). */
export function callbackUrlText(
  url: unknown,
  { allowHttpLoopback }: Pick<RequestRules, "allowHttpLoopback">,
  field = "callback_url",
): string {
  const callbackUrlError = (problem: string, fix: string): ClientError =>
    new ClientError("ERR_CALLBACK_URL_INVALID", problem, { fix, field });
  const parsed = parseSecureUrl(url, allowHttpLoopback);
  if (typeof parsed === "string") {
    throw callbackUrlError(
      `${field} ${parsed}.`,
      "Use an absolute https:// URL; for a service on your own machine, create the client with allowHttpLoopback: true.",
    );
  }
  const [, name] = /&(event|callbackUrl)=/.exec(String(url)) ?? [];
  if (name !== undefined && field === "callback_url") {
    throw callbackUrlError(
      `callback_url contains "&${name}=".`,
      `Rename that query parameter or put it first. Callbacks are signed over fields that are joined with "&", so the receiver would hold each of them as ambiguous.`,
    );
  }
  return JSON.stringify(url);
}

/** The schemes of URLs whose own content a browser would run or show. */
const FORBIDDEN_SCHEMES = new Set(["javascript:", "data:", "vbscript:", "blob:", "file:", "about:"]);

/** The redirects as JSON text. `names` are their members, which differ between the two endpoints. */
export function redirectsText(
  redirects: unknown,
  names: readonly string[],
  { required }: { readonly required: boolean },
): string {
  const redirectsError = (problem: string, fix: string): ClientError =>
    new ClientError("ERR_REDIRECTS_INVALID", problem, { fix, field: "redirects" });
  if (!isObject(redirects)) {
    throw redirectsError(
      `redirects is ${redirects === undefined ? "missing" : "not an object"}.`,
      `Pass { ${names.join(", ")} }.`,
    );
  }
  const givenRedirects = Object.entries(redirects as Readonly<Record<string, unknown>>).filter(
    ([, value]) => value !== undefined,
  );
  for (const [name, value] of givenRedirects) {
    if (!names.includes(name)) {
      throw redirectsError(
        `redirects has ${JSON.stringify(name.slice(0, 40))}.`,
        `This call names its members ${names.join(" and ")}; direct payment and checkout differ.`,
      );
    }
    const url = parseUrl(value);
    if (typeof url === "string") throw redirectsError(`redirects.${name} ${url}.`, "Pass an absolute URL.");
    if (FORBIDDEN_SCHEMES.has(url.protocol)) {
      throw redirectsError(
        `redirects.${name} begins with ${url.protocol}.`,
        "Pass the address of a page or an app.",
      );
    }
  }
  const missingName = names.find((name) => !givenRedirects.some(([other]) => other === name));
  if (required && missingName !== undefined) {
    throw redirectsError(`redirects.${missingName} is missing.`, `Pass both ${names.join(" and ")}.`);
  }
  return JSON.stringify(Object.fromEntries(givenRedirects));
}

export function textField(value: unknown, field: string): string {
  if (typeof value !== "string") {
    throw new ClientError("ERR_FIELD_INVALID", `${field} is ${kindOf(value)}.`, {
      fix: "Pass a string.",
      field,
    });
  }
  return JSON.stringify(value);
}

export function booleanField(value: unknown, field: string): string {
  if (typeof value !== "boolean") {
    throw new ClientError("ERR_FIELD_INVALID", `${field} is ${kindOf(value)}.`, {
      fix: "Pass true or false.",
      field,
    });
  }
  return JSON.stringify(value);
}
