/**
 * The possible readings of a signed string.
 *
 * A callback's signature covers its canonical string, `name=value` joined with `&`, in which nothing is escaped. So
 * more than one body may have this string, and the body that arrived is only one way to spell it. Payhooks therefore
 * reads the string, not the body. It works out for which bodies the service could have signed this string, and accepts
 * only the values on which all of these bodies agree.
 *
 * The string is cut at every `&`. A part that begins with `name=` may begin a field. Any other part belongs to the
 * value before it. A reading is a path through such parts:
 *
 *     amount=1 ─▶ callbackUrl=u ─▶ event=DEPOSIT ─▶ … ─▶ referenceId=r ─▶ status=SUCCESS ─▶ timestamp=t ─▶ end
 *                                                     ╲
 *                                                      referenceId=r&status=SUCCESS ─▶ status=FAILED ─▶ …
 *
 * Names ascend along a path, no required field is left out, and a value that the service chooses is one part and well
 * formed. These rules compare only two neighbouring parts. So two passes over the parts, one from each end, find the
 * steps that lie on a complete path, and these steps give the possible values of each field. The paths themselves may
 * be exponentially many, and are never walked.
 */

import { isFieldName } from "../names/fields.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import type { CallbackField } from "../signature/canonical.ts";
import {
  type CallbackRules,
  type CallbackTexts,
  type KnownField,
  mayEndInHost,
  type Wire,
} from "./callback.ts";

/** A string of more parts is not read. A documented callback has eleven parts, and one more for each `&` in a value. */
export const MAX_SIGNED_PARTS = 128;

/** The facts on which all readings of a string agree. */
export interface Agreement {
  /** The known fields on which all readings agree, by their names in events. */
  readonly texts: CallbackTexts;
  /** Optional fields that some reading has, but on which the readings do not agree. */
  readonly leftOut: readonly string[];
  /** Essential fields in which the readings contradict each other. If there is one, nothing in the string is certain. */
  readonly contradicted: readonly string[];
}

/** The fields to look for, sorted by name, and the position of each. */
export interface KnownFields {
  readonly fields: readonly KnownField[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** For each ordinal (see {@link PossibleReadings}), the ordinal of the next required field. */
  readonly nextRequired: readonly number[];
  readonly pinnedUrls: ReadonlySet<string>;
  /** The names on the wire, by role. A role without a field is left out. */
  readonly roles: ReadonlyMap<CallbackField, string>;
  /**
   * The field that ends the query of a callback URL: the specification's first field after the URL that is always sent
   * and that only the service chooses. Null if the URL is not always sent, or if a free text may be between the two.
   */
  readonly afterUrl: string | null;
}

/** Roles whose value may end earlier without a change of any other value. */
const MAY_LOSE_TAIL: ReadonlySet<CallbackField | null> = new Set(["callbackUrl", "message"]);

/**
 * The fields to look for.
 *
 * An optional field adds readings, so fewer values are certain. A required field takes readings away. If it is not
 * really always sent, the only reading left may be a forgery. So only the specification, or a declaration of the
 * merchant, makes a field required. `merchantId` is not required even if a resolver or `payments.expect` needs it,
 * because this does not show that the service has sent it.
 */
export function knownFields(
  { fields, byRole }: Wire,
  { pinnedUrls }: Pick<CallbackRules, "pinnedUrls">,
): KnownFields {
  const indexOf = new Map(fields.map(({ name }, i) => [name, i]));
  const roles = new Map([...byRole].map(([role, { name }]) => [role, name]));
  return {
    fields,
    indexOf,
    nextRequired: nextRequiredOf(fields),
    pinnedUrls,
    roles,
    afterUrl: afterUrlOf(fields),
  };
}

function afterUrlOf(fields: readonly KnownField[]): string | null {
  const url = fields.findIndex(({ role }) => role === "callbackUrl");
  if (fields[url]?.isRequired !== true) return null;
  const nextField = fields.find(
    ({ isFreeText, isRequired, role }, i) => i > url && (isFreeText || (isRequired && role !== null)),
  );
  return nextField === undefined || nextField.isFreeText ? null : nextField.name;
}

/** The readings of one signed string. */
export class PossibleReadings {
  /** True for a string of more than {@link MAX_SIGNED_PARTS} parts. Such a string is not read. */
  readonly isTooLong: boolean;
  /** The position of each part in the string. The last entry is the end of the string, as if it were followed by an `&`. */
  readonly #starts: readonly number[];
  readonly #signed: string;
  readonly #names: readonly (string | null)[];
  /**
   * The place of each part's name in the order of names. The i-th known name has 2i + 1. An unknown name that sorts
   * directly before it has 2i. So names ascend if ordinals do. Two unknown names may have the same ordinal. Then the
   * part of the second name counts as part of the first value. That makes no difference to any known field.
   */
  readonly #ordinals: readonly number[];
  readonly #known: KnownFields;
  /** The steps that are part of a complete path: for each part, the parts that may follow its value. */
  readonly #steps: readonly (readonly number[])[];

  constructor(signed: string, fields: KnownFields) {
    const starts = partStarts(signed);
    const count = starts.length - 1;
    this.isTooLong = count > MAX_SIGNED_PARTS;
    this.#signed = signed;
    this.#starts = starts;
    this.#known = fields;
    this.#names = Array.from({ length: this.isTooLong ? 0 : count }, (_, i) => nameAt(signed, starts, i));
    this.#ordinals = this.#names.map((name) => (name === null ? -1 : ordinalOf(name, fields)));
    this.#steps = this.#findSteps();
  }

  /** False if the service cannot have signed the string for any body. */
  get hasReading(): boolean {
    return (this.#steps[0]?.length ?? 0) > 0;
  }

  /** The times at which the string may have been signed: the timestamps of all readings, in milliseconds since the epoch. */
  signedTimes(): readonly number[] {
    const times: number[] = [];
    const name = this.#known.roles.get("timestamp");
    this.#steps.forEach((next, i) => {
      if (this.#names[i] !== name) return;
      for (const end of next) times.push(parseTimestamp(this.#valueAt(i, end)) ?? 0);
    });
    return times;
  }

  /** All values that a field of the specification has in any reading. */
  valuesOf(field: CallbackField): readonly string[] {
    const wireName = this.#known.roles.get(field);
    const values = new Set<string>();
    this.#steps.forEach((next, i) => {
      if (this.#names[i] === wireName) for (const end of next) values.add(this.#valueAt(i, end));
    });
    return [...values];
  }

  /**
   * True if each part that begins with this name is a field in some reading. If not, the service may have written a field in an
   * undocumented way, and no reading may have the genuine value.
   */
  hasEach(field: CallbackField): boolean {
    const wireName = this.#known.roles.get(field);
    return this.#names.every((name, part) => name !== wireName || this.#hasStep(part));
  }

  /** True if a part of the string begins with this name. */
  hasName(name: string): boolean {
    return this.#names.includes(name);
  }

  /** The first name in the string that belongs to no known field. */
  unknownName(): string | undefined {
    return (
      this.#names.find((name) => name !== null && isFieldName(name) && !this.#known.indexOf.has(name)) ??
      undefined
    );
  }

  /**
   * The facts on which all readings agree. They may differ in where the value of `callbackUrl` or `message` ends: see {@link
   * FieldValues.choose}.
   */
  agreement(): Agreement {
    const { fields } = this.#known;
    const values = fields.map(({ role }) => new FieldValues(MAY_LOSE_TAIL.has(role)));
    const optional = fields.flatMap(({ isRequired }, i) => (isRequired ? [] : [i]));
    const skip = (from: number, to: number): void => {
      for (const i of optional) if (from < 2 * i + 1 && 2 * i + 1 < to) values[i]?.skip();
    };
    skip(-1, this.#ordinals[0] ?? 0);
    this.#steps.forEach((next, i) => {
      const ordinal = this.#ordinals[i] ?? 0;
      for (const end of next) {
        skip(ordinal, this.#ordinalOrEnd(end));
        if (ordinal % 2 === 1) values[(ordinal - 1) / 2]?.add(i, this.#valueAt(i, end));
      }
    });
    const texts = new Map<string, string>();
    const leftOut: string[] = [];
    const contradicted: string[] = [];
    fields.forEach(({ key, role, isEssential }, i) => {
      const fieldValues = values[i];
      if (fieldValues === undefined || !fieldValues.hasValues) return;
      if (fieldValues.isAgreed) texts.set(key, fieldValues.choose(role === "callbackUrl"));
      else (isEssential ? contradicted : leftOut).push(key);
    });
    return { texts, leftOut, contradicted };
  }

  /**
   * Known fields whose names begin more than one part, not counting the query of the callback URL. If another value has
   * swallowed a field, the field's name is still in the string. So this also reveals a forgery if the service wrote a
   * field in an undocumented way, and the genuine body is not among the readings.
   */
  repeatedFields(): readonly string[] {
    const { fields, indexOf, pinnedUrls, roles, afterUrl } = this.#known;
    const urlName = roles.get("callbackUrl") ?? "";
    // If another free text may follow the URL, or the URL may be missing, no part counts as its query.
    const urlPart = afterUrl === null ? -1 : this.#firstStep(urlName);
    const afterUrlPart = afterUrl === null ? -1 : this.#firstStep(afterUrl);
    const urlEnd = Math.max(...(this.#steps[urlPart] ?? []));
    const isPinned = urlPart >= 0 && pinnedUrls.size > 0 && this.#isPinned(urlPart, urlEnd);
    const inQuery = new Set<string>();
    const elsewhere = new Set<string>();
    const repeatedNames = new Set<string>();
    this.#names.forEach((name, part) => {
      if (name === null || !indexOf.has(name)) return;
      const mayBeQuery = part < afterUrlPart && name !== afterUrl && name !== urlName;
      if (urlPart >= 0 && urlPart < part && (mayBeQuery || (isPinned && part < urlEnd))) inQuery.add(name);
      else if (elsewhere.has(name)) repeatedNames.add(name);
      else elsewhere.add(name);
    });
    // Another field may be between the URL and the field that ends its query. The agreement has checked that field already.
    for (const name of inQuery) {
      if (name > urlName && name < (afterUrl ?? "") && elsewhere.has(name)) repeatedNames.add(name);
    }
    return [...repeatedNames].map((name) => fields[indexOf.get(name) ?? -1]?.key ?? name);
  }

  #hasStep(part: number): boolean {
    return (this.#steps[part]?.length ?? 0) > 0;
  }

  /** The first part that begins a field of this name in a reading. */
  #firstStep(name: string): number {
    return this.#names.findIndex((each, part) => each === name && this.#hasStep(part));
  }

  #valueAt(part: number, end: number): string {
    const nameEnd = (this.#starts[part] ?? 0) + (this.#names[part]?.length ?? 0) + 1;
    return this.#signed.slice(nameEnd, (this.#starts[end] ?? 0) - 1);
  }

  #ordinalOrEnd(part: number): number {
    return this.#ordinals[part] ?? 2 * this.#known.fields.length + 1;
  }

  /** Finds the steps of all readings. A pinned URL is indivisible: no reading cuts it or continues it. */
  #findSteps(): readonly (readonly number[])[] {
    const count = this.#names.length;
    const followers = this.#names.map((_, part) =>
      this.#ordinals[part] === -1 ? [] : this.#followersOf(part, count),
    );
    const steps = this.#wholePaths(followers);
    if (this.#known.pinnedUrls.size === 0) return steps;
    return this.#wholePaths(
      steps.map((next, part) => {
        const isUrl = this.#names[part] === this.#known.roles.get("callbackUrl");
        const pinned = isUrl ? next.filter((end) => this.#isPinned(part, end)) : [];
        return pinned.length > 0 ? pinned : next;
      }),
    );
  }

  /**
   * Both passes. The first finds the parts that can be reached from the start. The second finds those of them from
   * which the end can be reached.
   */
  #wholePaths(followers: readonly (readonly number[])[]): readonly (readonly number[])[] {
    const count = followers.length;
    const reached = new Set<number>();
    if (this.#ordinals[0] !== -1 && (this.#known.nextRequired[0] ?? 0) >= (this.#ordinals[0] ?? 0))
      reached.add(0);
    followers.forEach((next, part) => {
      if (reached.has(part)) for (const end of next) reached.add(end);
    });
    const reachesEnd = new Set([count]);
    const steps: (readonly number[])[] = [];
    for (let part = count - 1; part >= 0; part--) {
      const followingParts = reached.has(part)
        ? (followers[part] ?? []).filter((end) => reachesEnd.has(end))
        : [];
      if (followingParts.length > 0) reachesEnd.add(part);
      steps[part] = followingParts;
    }
    return steps;
  }

  /** The parts that may follow a field's value, including the end of the string. */
  #followersOf(part: number, count: number): readonly number[] {
    const ordinal = this.#ordinals[part] ?? 0;
    const form = ordinal % 2 === 1 ? this.#known.fields[(ordinal - 1) / 2] : undefined;
    const ends: number[] = [];
    const lastEnd = form?.isFreeText === false ? part + 1 : count;
    let fits = true;
    for (let end = part + 1; end <= lastEnd; end++) {
      // After the host of a URL, further characters cannot make it invalid, so it is not parsed again.
      const isSettled =
        end > part + 1 && form?.role === "callbackUrl" && !mayEndInHost(this.#valueAt(part, end - 1));
      if (form !== undefined && !isSettled) fits = form.fits(this.#valueAt(part, end));
      if (fits && this.#mayFollow(part, end)) ends.push(end);
    }
    return ends;
  }

  /** True if a value is a pinned URL. Only the few values of the right length are compared. */
  #isPinned(part: number, end: number): boolean {
    const value = this.#valueAt(part, end);
    for (const url of this.#known.pinnedUrls) if (value.length === url.length && value === url) return true;
    return false;
  }

  #mayFollow(part: number, next: number): boolean {
    const ordinal = this.#ordinals[part] ?? 0;
    const nextOrdinal = this.#ordinalOrEnd(next);
    return nextOrdinal > ordinal && nextOrdinal <= (this.#known.nextRequired[ordinal] ?? 0);
  }
}

/** The values of one field in all readings. */
class FieldValues {
  readonly #mayLoseTail: boolean;
  #part = -1;
  #values: string[] = [];
  #isAgreed = true;

  constructor(mayLoseTail: boolean) {
    this.#mayLoseTail = mayLoseTail;
  }

  get hasValues(): boolean {
    return this.#values.length > 0;
  }

  /** True if all readings have the field with the same value or, for some fields, with a shorter or longer part of one value. */
  get isAgreed(): boolean {
    return this.#isAgreed;
  }

  /** There is a reading without the field. */
  skip(): void {
    this.#isAgreed = false;
  }

  add(part: number, value: string): void {
    if (!this.hasValues) this.#part = part;
    else if (this.#mayLoseTail ? part !== this.#part : value !== this.#values[0]) this.#isAgreed = false;
    if (this.#isAgreed || !this.hasValues) this.#values.push(value);
  }

  /**
   * The value. If the values differ in their ends, it is the longest: the part after an `&` belongs to the message, or
   * to the query of the URL. For a URL without a query it is the shortest: the rest is an undocumented field.
   */
  choose(isUrl: boolean): string {
    const byLength = this.#values.toSorted((a, b) => a.length - b.length);
    const [shortest = ""] = byLength;
    return isUrl && !shortest.includes("?") ? shortest : (byLength.at(-1) ?? "");
  }
}

function partStarts(signed: string): number[] {
  const starts = [0];
  for (let index = signed.indexOf("&"); index >= 0; index = signed.indexOf("&", index + 1))
    starts.push(index + 1);
  starts.push(signed.length + 1);
  return starts;
}

/** The name of the field that a part begins, or null. No canonical string has a field named `signature`. */
function nameAt(signed: string, starts: readonly number[], part: number): string | null {
  const start = starts[part] ?? 0;
  const equals = signed.indexOf("=", start);
  if (equals <= start || equals >= (starts[part + 1] ?? 0)) return null;
  const name = signed.slice(start, equals);
  return name === "signature" ? null : name;
}

function ordinalOf(name: string, { fields, indexOf }: KnownFields): number {
  const index = indexOf.get(name);
  if (index !== undefined) return 2 * index + 1;
  const nextIndex = fields.findIndex((field) => field.name > name);
  return 2 * (nextIndex < 0 ? fields.length : nextIndex);
}

/** For each ordinal, the ordinal of the next required field. If none follows, this is the ordinal of the string's end. */
function nextRequiredOf(fields: readonly KnownField[]): readonly number[] {
  const nextRequired: number[] = [];
  let requiredOrdinal = 2 * fields.length + 1;
  for (let ordinal = 2 * fields.length; ordinal >= 0; ordinal--) {
    nextRequired[ordinal] = requiredOrdinal;
    if (ordinal % 2 === 1 && fields[(ordinal - 1) / 2]?.isRequired === true) requiredOrdinal = ordinal;
  }
  return nextRequired;
}
