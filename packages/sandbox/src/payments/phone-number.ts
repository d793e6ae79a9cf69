/** Country code and number, digits only or with one space between them, no leading plus. */
const PHONE_NUMBER_PATTERN = /^[1-9]\d{0,2} ?\d+$/;

/** The country calling codes of two digits (ITU E.164). 1 and 7 have one digit, and all others have three. */
const TWO_DIGIT_CODE_PATTERN = /^(?:2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;

/** The digits of a phone number that begins with its country code, or null if it is written in any other way. */
export function phoneDigits(text: string): string | null {
  const digits = text.replace(" ", "");
  return PHONE_NUMBER_PATTERN.test(text) && digits.length >= 7 && digits.length <= 15 ? digits : null;
}

/** The phone number as transactions show it, with a space after the country code (specification, Transaction). */
export function formatPhoneNumber(digits: string): string {
  const length = /^[17]/.test(digits) ? 1 : TWO_DIGIT_CODE_PATTERN.test(digits) ? 2 : 3;
  return `${digits.slice(0, length)} ${digits.slice(length)}`;
}
