import type { PaymentStatus } from "../protocol/events.ts";
import { STATUS_RANK } from "../protocol/events.ts";
import { CALLBACK_FIELDS, type CallbackField } from "../signature/canonical.ts";
import { defaultPresenceOf, isDocumented, isFieldName, NEVER_ABSENT_FIELDS } from "./fields.ts";
import type { FieldName, FieldPresence, ServiceNames } from "./options.ts";

/** A fault, and its fix. */
export interface NameFault {
  readonly what: string;
  readonly fix: string;
}

type Members = Readonly<Record<string, unknown>>;

const NAME_FIX =
  'A name has 1 to 64 letters, digits, "_", "." and "-", begins with a letter, and is not "signature"';
const STATUS_WORD_PATTERN = /^[A-Z_]{1,64}$/;
const HEADER_NAME_PATTERN = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
const PATH_SEGMENT_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const MEDIUM_PATTERN = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** Headers that every request has for another purpose. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set(["content-type", "content-length", "host"]);

/** Reads options of any type, and collects their faults. */
export class NamesCheck {
  readonly faults: NameFault[] = [];

  addFault(what: string, fix: string): void {
    this.faults.push({ what, fix });
  }

  /** The members of an object that may be missing. Members of other names are faults. */
  membersOf(value: unknown, path: string, names: readonly string[]): Members {
    if (value === undefined) return {};
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.addFault(`${path} is not an object`, `Its members are ${names.join(", ")}`);
      return {};
    }
    for (const [name, member] of Object.entries(value)) {
      if (member !== undefined && !names.includes(name)) {
        this.addFault(`${path} has no member ${quoteValue(name)}`, `Its members are ${names.join(", ")}`);
      }
    }
    return value as Members;
  }

  fields(value: unknown): Readonly<Record<CallbackField, FieldName>> {
    const members = this.membersOf(value, "callback.fields", CALLBACK_FIELDS);
    const entries = CALLBACK_FIELDS.map((field) => [field, this.#field(field, members[field])] as const);
    return Object.freeze(Object.fromEntries(entries) as Record<CallbackField, FieldName>);
  }

  #field(field: CallbackField, value: unknown): FieldName {
    const path = `callback.fields.${field}`;
    const members =
      typeof value === "string" ? { name: value } : this.membersOf(value, path, ["name", "sent"]);
    const { name = field, sent = defaultPresenceOf(field) } = members;
    if (!isFieldName(name)) this.addFault(`${path} has the name ${quoteValue(name)}`, NAME_FIX);
    if (sent !== "always" && sent !== "sometimes" && sent !== "absent") {
      this.addFault(`${path}.sent is ${quoteValue(sent)}`, 'It can be "always", "sometimes" or "absent"');
    } else if (sent !== "always" && NEVER_ABSENT_FIELDS.has(field)) {
      this.addFault(
        `${path}.sent is ${quoteValue(sent)}`,
        `Without ${field} there is no event: leave sent out`,
      );
    }
    return Object.freeze({ name, sent } as FieldName);
  }

  extra(
    value: unknown = {},
    fields: Readonly<Record<CallbackField, FieldName>>,
  ): Readonly<Record<string, FieldPresence>> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.addFault("callback.extra is not an object", 'Write it as { currency: "always" }');
      return {};
    }
    const extra: Record<string, FieldPresence> = Object.create(null) as Record<string, FieldPresence>;
    for (const [name, sent] of Object.entries(value)) {
      if (!isFieldName(name)) this.addFault(`callback.extra has the name ${quoteValue(name)}`, NAME_FIX);
      if (sent !== "always" && sent !== "sometimes") {
        this.addFault(`callback.extra.${name} is ${quoteValue(sent)}`, 'It can be "always" or "sometimes"');
      }
      if (isDocumented(name) && (fields[name].name !== name || fields[name].sent === "absent")) {
        const fix =
          "People would take one for the other: name the field of the specification so, or no field";
        this.addFault(`callback.extra has ${name}, which is the specification's name of another field`, fix);
      }
      extra[name] = sent as FieldPresence;
    }
    return Object.freeze(extra);
  }

  /** Each name on the wire belongs to one field. */
  checkUnique({ fields, extra }: Pick<ServiceNames["callback"], "fields" | "extra">): void {
    const owners = new Map<string, string>();
    const claimName = (name: string, owner: string): void => {
      const otherOwner = owners.get(name);
      if (otherOwner === undefined) owners.set(name, owner);
      else
        this.addFault(
          `${otherOwner} and ${owner} have one name, ${quoteValue(name)}`,
          "Give each a name of its own",
        );
    };
    for (const field of CALLBACK_FIELDS)
      if (fields[field].sent !== "absent") claimName(fields[field].name, field);
    for (const name of Object.keys(extra)) claimName(name, `the extra field ${name}`);
  }

  statuses(value: unknown): Readonly<Record<PaymentStatus, readonly string[]>> {
    const allStatuses = Object.keys(STATUS_RANK) as PaymentStatus[];
    const members = this.membersOf(value, "callback.statuses", allStatuses);
    const meanings = new Map<unknown, string>(allStatuses.map((status) => [status, status]));
    const entries = allStatuses.map((status) => {
      const path = `callback.statuses.${status}`;
      const words = this.#list(members[status] ?? [], path);
      for (const word of words) {
        if (typeof word !== "string" || !STATUS_WORD_PATTERN.test(word)) {
          this.addFault(`${path} has ${quoteValue(word)}`, 'A word is 1 to 64 capital letters and "_"');
        } else if (meanings.has(word)) {
          this.addFault(
            `${path} has ${word}, which is a word for ${meanings.get(word)} already`,
            "List it once",
          );
        } else meanings.set(word, status);
      }
      return [status, Object.freeze([...words] as string[])] as const;
    });
    return Object.freeze(Object.fromEntries(entries) as Record<PaymentStatus, readonly string[]>);
  }

  connect(value: unknown): ServiceNames["connect"] {
    const members = this.membersOf(value, "connect", ["signatureHeader", "pathSegment"]);
    const signatureHeader = this.#text(
      members,
      "connect",
      "signatureHeader",
      "X-Connect-Signature",
      HEADER_NAME_PATTERN,
    );
    const pathSegment = this.#text(members, "connect", "pathSegment", "connect", PATH_SEGMENT_PATTERN);
    if (RESERVED_HEADERS.has(signatureHeader.toLowerCase())) {
      this.addFault(`connect.signatureHeader is ${signatureHeader}`, "That header has another purpose");
    }
    return Object.freeze({ signatureHeader, pathSegment });
  }

  api(value: unknown): ServiceNames["api"] {
    const members = this.membersOf(value, "api", ["medium", "transactionIdFields"]);
    const medium = this.#text(members, "api", "medium", "PAY", MEDIUM_PATTERN);
    const path = "api.transactionIdFields";
    const names = this.#list(members.transactionIdFields ?? TRANSACTION_ID_FIELDS, path);
    if (names.length === 0) this.addFault(`${path} is empty`, "Leave it out for the default");
    if (new Set(names).size < names.length) this.addFault(`${path} has a name twice`, "List it once");
    for (const name of names)
      if (!isFieldName(name)) this.addFault(`${path} has ${quoteValue(name)}`, NAME_FIX);
    return Object.freeze({ medium, transactionIdFields: Object.freeze([...names] as string[]) });
  }

  #text(members: Members, section: string, name: string, byDefault: string, form: RegExp): string {
    const { [name]: value = byDefault } = members;
    if (typeof value === "string" && form.test(value)) return value;
    this.addFault(
      `${section}.${name} is ${quoteValue(value)}`,
      'It is one word of letters, digits, "-" and, but for a header, "_"',
    );
    return byDefault;
  }

  #list(value: unknown, path: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    this.addFault(`${path} is not a list`, `Write it as ["…"]`);
    return [];
  }
}

const TRANSACTION_ID_FIELDS: readonly string[] = ["transaction_id", "transactionId", "payTxnId", "id"];

function quoteValue(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : `of type ${typeof value}`;
}
