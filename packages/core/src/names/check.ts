import type { PaymentStatus } from "../protocol/events.ts";
import { STATUS_RANK } from "../protocol/events.ts";
import { CALLBACK_FIELDS, type CallbackField } from "../signature/canonical.ts";
import { isDocumented, isFieldName, NEVER_ABSENT, sentByDefault } from "./fields.ts";
import type { FieldName, Sent, ServiceNames } from "./options.ts";

/** A fault, and its fix. */
export interface NameFault {
  readonly what: string;
  readonly fix: string;
}

type Members = Readonly<Record<string, unknown>>;

const NAME_FIX =
  'A name has 1 to 64 letters, digits, "_", "." and "-", begins with a letter, and is not "signature"';
const STATUS_WORD = /^[A-Z_]{1,64}$/;
const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const MEDIUM = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** Headers that every request has for another purpose. */
const OTHER_HEADERS: ReadonlySet<string> = new Set(["content-type", "content-length", "host"]);

/** Reads options of any type, and collects their faults. */
export class Check {
  readonly faults: NameFault[] = [];

  add(what: string, fix: string): void {
    this.faults.push({ what, fix });
  }

  /** The members of an object that may be missing. Members of other names are faults. */
  membersOf(value: unknown, path: string, names: readonly string[]): Members {
    if (value === undefined) return {};
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.add(`${path} is not an object`, `Its members are ${names.join(", ")}`);
      return {};
    }
    for (const [name, member] of Object.entries(value)) {
      if (member !== undefined && !names.includes(name)) {
        this.add(`${path} has no member ${quoted(name)}`, `Its members are ${names.join(", ")}`);
      }
    }
    return value as Members;
  }

  fields(value: unknown): Readonly<Record<CallbackField, FieldName>> {
    const given = this.membersOf(value, "callback.fields", CALLBACK_FIELDS);
    const entries = CALLBACK_FIELDS.map((field) => [field, this.#field(field, given[field])] as const);
    return Object.freeze(Object.fromEntries(entries) as Record<CallbackField, FieldName>);
  }

  #field(field: CallbackField, value: unknown): FieldName {
    const path = `callback.fields.${field}`;
    const given = typeof value === "string" ? { name: value } : this.membersOf(value, path, ["name", "sent"]);
    const { name = field, sent = sentByDefault(field) } = given;
    if (!isFieldName(name)) this.add(`${path} has the name ${quoted(name)}`, NAME_FIX);
    if (sent !== "always" && sent !== "sometimes" && sent !== "absent") {
      this.add(`${path}.sent is ${quoted(sent)}`, 'It can be "always", "sometimes" or "absent"');
    } else if (sent !== "always" && NEVER_ABSENT.has(field)) {
      this.add(`${path}.sent is ${quoted(sent)}`, `Without ${field} there is no event: leave sent out`);
    }
    return Object.freeze({ name, sent } as FieldName);
  }

  extra(
    value: unknown = {},
    fields: Readonly<Record<CallbackField, FieldName>>,
  ): Readonly<Record<string, Sent>> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.add("callback.extra is not an object", 'Write it as { currency: "always" }');
      return {};
    }
    const extra: Record<string, Sent> = Object.create(null) as Record<string, Sent>;
    for (const [name, sent] of Object.entries(value)) {
      if (!isFieldName(name)) this.add(`callback.extra has the name ${quoted(name)}`, NAME_FIX);
      if (sent !== "always" && sent !== "sometimes") {
        this.add(`callback.extra.${name} is ${quoted(sent)}`, 'It can be "always" or "sometimes"');
      }
      if (isDocumented(name) && (fields[name].name !== name || fields[name].sent === "absent")) {
        const fix =
          "People would take one for the other: name the field of the specification so, or no field";
        this.add(`callback.extra has ${name}, which is the specification's name of another field`, fix);
      }
      extra[name] = sent as Sent;
    }
    return Object.freeze(extra);
  }

  /** Each name on the wire belongs to one field. */
  unique({ fields, extra }: Pick<ServiceNames["callback"], "fields" | "extra">): void {
    const owners = new Map<string, string>();
    const own = (name: string, owner: string): void => {
      const other = owners.get(name);
      if (other === undefined) owners.set(name, owner);
      else this.add(`${other} and ${owner} have one name, ${quoted(name)}`, "Give each a name of its own");
    };
    for (const field of CALLBACK_FIELDS) if (fields[field].sent !== "absent") own(fields[field].name, field);
    for (const name of Object.keys(extra)) own(name, `the extra field ${name}`);
  }

  statuses(value: unknown): Readonly<Record<PaymentStatus, readonly string[]>> {
    const all = Object.keys(STATUS_RANK) as PaymentStatus[];
    const given = this.membersOf(value, "callback.statuses", all);
    const meanings = new Map<unknown, string>(all.map((status) => [status, status]));
    const entries = all.map((status) => {
      const path = `callback.statuses.${status}`;
      const words = this.#list(given[status] ?? [], path);
      for (const word of words) {
        if (typeof word !== "string" || !STATUS_WORD.test(word)) {
          this.add(`${path} has ${quoted(word)}`, 'A word is 1 to 64 capital letters and "_"');
        } else if (meanings.has(word)) {
          this.add(`${path} has ${word}, which is a word for ${meanings.get(word)} already`, "List it once");
        } else meanings.set(word, status);
      }
      return [status, Object.freeze([...words] as string[])] as const;
    });
    return Object.freeze(Object.fromEntries(entries) as Record<PaymentStatus, readonly string[]>);
  }

  connect(value: unknown): ServiceNames["connect"] {
    const given = this.membersOf(value, "connect", ["signatureHeader", "pathSegment"]);
    const signatureHeader = this.#text(given, "connect", "signatureHeader", "X-Connect-Signature", HEADER);
    const pathSegment = this.#text(given, "connect", "pathSegment", "connect", SEGMENT);
    if (OTHER_HEADERS.has(signatureHeader.toLowerCase())) {
      this.add(`connect.signatureHeader is ${signatureHeader}`, "That header has another purpose");
    }
    return Object.freeze({ signatureHeader, pathSegment });
  }

  api(value: unknown): ServiceNames["api"] {
    const given = this.membersOf(value, "api", ["medium", "transactionIdFields"]);
    const medium = this.#text(given, "api", "medium", "PAY", MEDIUM);
    const path = "api.transactionIdFields";
    const names = this.#list(given.transactionIdFields ?? TRANSACTION_ID_FIELDS, path);
    if (names.length === 0) this.add(`${path} is empty`, "Leave it out for the default");
    if (new Set(names).size < names.length) this.add(`${path} has a name twice`, "List it once");
    for (const name of names) if (!isFieldName(name)) this.add(`${path} has ${quoted(name)}`, NAME_FIX);
    return Object.freeze({ medium, transactionIdFields: Object.freeze([...names] as string[]) });
  }

  #text(given: Members, section: string, name: string, byDefault: string, form: RegExp): string {
    const { [name]: value = byDefault } = given;
    if (typeof value === "string" && form.test(value)) return value;
    this.add(
      `${section}.${name} is ${quoted(value)}`,
      'It is one word of letters, digits, "-" and, but for a header, "_"',
    );
    return byDefault;
  }

  #list(value: unknown, path: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    this.add(`${path} is not a list`, `Write it as ["…"]`);
    return [];
  }
}

const TRANSACTION_ID_FIELDS: readonly string[] = ["transaction_id", "transactionId", "payTxnId", "id"];

function quoted(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : `of type ${typeof value}`;
}
