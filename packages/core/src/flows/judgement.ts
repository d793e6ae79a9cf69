import type { Candidates } from "../protocol/contents.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import {
  type CallbackRules,
  type CallbackTexts,
  cutAtNames,
  findMalformedField,
  type Wire,
  withoutDeclarations,
} from "./callback.ts";
import { guessMissingField } from "./missing-field.ts";
import { knownFields, MAX_SIGNED_PARTS, PossibleReadings } from "./readings.ts";

/** The certain content of an authentic callback. */
export type Judgement =
  /** Every reading of the signed string says this. */
  | {
      readonly kind: "certain";
      /** The fields, by their names in events: neutral names, and those of extra fields. */
      readonly texts: CallbackTexts;
      /** Fields that are left out of the event, because the readings do not agree on them. */
      readonly leftOut: readonly string[];
    }
  /** `ambiguous`: it can be read as different events. `malformed`: it cannot be read as any. */
  | {
      readonly kind: "ambiguous" | "malformed";
      /** Why, naming fields but not their values. */
      readonly detail: string;
      /** The times at which it may have been signed, in milliseconds since the epoch. Empty if this is not known. */
      readonly signedTimes: readonly number[];
      /** The references and transaction ids of its readings, at most 16. Empty if it has no reading. */
      readonly mayName: readonly string[];
      /** The transactions that it may be about. Null if it has no reading. */
      readonly candidates: Candidates | null;
    };

/** How many references, and how many transaction ids, are kept with an event outside of the table. Others are left out. */
const MAX_KEPT_IDS = 8;

const NO_FIELDS_LEFT_OUT: readonly string[] = [];

/** Makes the judge of authentic callbacks. `docs/concepts/security.md` explains the attack, and what a reading is. */
export function callbackJudge(rules: CallbackRules): (signed: string) => Judgement {
  const { wire } = rules;
  const fields = knownFields(wire, rules);
  const specifiedFields = knownFields(withoutDeclarations(wire), rules);
  const isMerchantIdNeeded = rules.isMerchantIdRequired || rules.pinnedMerchantIds.size > 0;

  return (signed) => {
    const cut = cutAtNames(signed, wire);
    if (cut.isPlain && findMalformedField(cut.texts, rules) === null) {
      return { kind: "certain", texts: cut.texts, leftOut: NO_FIELDS_LEFT_OUT };
    }
    const readings = new PossibleReadings(signed, fields);
    if (readings.hasReading) {
      const { texts, leftOut, ...agreement } = readings.agreement();
      const isInDoubt = isMerchantIdNeeded && leftOut.includes("merchantId");
      const contradicted = isInDoubt ? [...agreement.contradicted, "merchantId"] : agreement.contradicted;
      const repeatedNames = contradicted.length > 0 ? [] : readings.repeatedFields();
      if (repeatedNames.length > 0)
        return ambiguousJudgement(`its signed string repeats ${repeatedNames.join(", ")}`, readings);
      if (contradicted.length === 0) {
        const fault = findMalformedField(texts, rules);
        return fault === null ? { kind: "certain", texts, leftOut } : malformedJudgement(fault, signed, wire);
      }
      return ambiguousJudgement(
        `its signature fits events that differ in ${contradicted.join(", ")}${hintOf(readings)}`,
        readings,
      );
    }
    const specifiedReadings = new PossibleReadings(signed, specifiedFields);
    if (specifiedReadings.hasReading)
      return ambiguousJudgement(describeMissingField(readings, wire), specifiedReadings);
    const detail = readings.isTooLong
      ? `the signed string has more than ${MAX_SIGNED_PARTS} parts`
      : (guessMissingField(signed, wire) ??
        findMalformedField(cut.texts, rules) ??
        "its fields cannot be told apart in the signed string");
    return malformedJudgement(detail, signed, wire);
  };
}

function malformedJudgement(detail: string, signed: string, wire: Wire): Judgement {
  return { kind: "malformed", detail, signedTimes: timesIn(signed, wire), mayName: [], candidates: null };
}

function ambiguousJudgement(detail: string, readings: PossibleReadings): Judgement {
  const allIds = readings.valuesOf("payTxnId");
  const ids = allIds.slice(0, MAX_KEPT_IDS);
  const mayName = [...readings.valuesOf("referenceId").slice(0, MAX_KEPT_IDS), ...ids];
  const candidates = { ids, complete: ids.length === allIds.length && readings.hasEach("payTxnId") };
  return { kind: "ambiguous", detail, signedTimes: readings.signedTimes(), mayName, candidates };
}

/** A hint about an undocumented field. It is the most common reason, and can be declared. */
function hintOf(readings: PossibleReadings): string {
  const name = readings.unknownName();
  if (name === undefined) return "";
  return ` (${name} is not documented: if every callback has it and only the service chooses its value, declare it as "always" in names.callback.extra)`;
}

function describeMissingField(readings: PossibleReadings, { fields }: Wire): string {
  const missingField = fields.find(({ name, isRequired }) => isRequired && !readings.hasName(name));
  if (missingField !== undefined)
    return `${missingField.key} is declared as "always" in the names but missing`;
  return "a declared field cannot be told apart in the signed string";
}

/** The times in a string that has no reading. Empty if one of them cannot be read, because that one may be the true time. */
function timesIn(signed: string, { byRole }: Wire): readonly number[] {
  const begins = `${byRole.get("timestamp")?.name}=`;
  const times: number[] = [];
  for (const part of signed.split("&")) {
    if (!part.startsWith(begins)) continue;
    const time = parseTimestamp(part.slice(begins.length));
    if (time === null) return [];
    times.push(time);
  }
  return times;
}
