import {
  type CallbackRules,
  type CallbackTexts,
  findMalformedField,
  isDocumented,
  isFieldName,
} from "./callback.ts";

/** Readings that an ambiguous entry keeps. */
export const MAX_READINGS = 8;
/** Steps of the search; a canonical string with many `&` has exponentially many splits. */
const MAX_STEPS = 20_000;

/**
 * The bodies that a canonical string could have been made from: every way to split it at `&` into fields whose
 * names ascend, where the documented ones are well formed (R1–R3). Which of them was meant, only the service knows.
 */
export function findReadings(canonical: string, rules: CallbackRules): readonly CallbackTexts[] {
  const parts = canonical.split("&");
  const found: CallbackTexts[] = [];
  const names: string[] = [];
  const values: string[] = [];
  let steps = 0;

  function search(index: number): void {
    if (found.length === MAX_READINGS || steps++ > MAX_STEPS) return;
    const part = parts[index];
    if (part === undefined) {
      const texts = new Map(names.map((name, i) => [name, values[i] ?? ""]));
      if (findMalformedField(texts, rules) === null) found.push(texts);
      return;
    }
    const equals = part.indexOf("=");
    const name = equals < 0 ? "" : part.slice(0, equals);
    const last = names.at(-1);
    if (canBegin(name, last)) {
      names.push(name);
      values.push(part.slice(equals + 1));
      search(index + 1);
      names.pop();
      values.pop();
    }
    if (last !== undefined) {
      const value = values.pop() ?? "";
      values.push(`${value}&${part}`);
      search(index + 1);
      values.pop();
      values.push(value);
    }
  }

  function canBegin(name: string, last: string | undefined): boolean {
    if (last !== undefined && name <= last) return false;
    return isDocumented(name) || (isFieldName(name) && name !== "signature");
  }

  search(0);
  return found;
}
