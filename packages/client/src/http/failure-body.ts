import { findMember, isObject, isText, type JsonObject, type JsonValue } from "../json.ts";
import { maskBody } from "./secrets.ts";

/** The useful parts of a failure's body, without secrets. The specification shows no such body; these are the usual forms. */
export interface FailureDetail {
  readonly body?: JsonValue;
  readonly serviceCode?: string | undefined;
  readonly requestId?: string | undefined;
  readonly fields?: Readonly<Record<string, string>> | undefined;
}

/**
 * True if a body says that the call failed, although its HTTP status is 2xx: `success` is false, or `status` is
 * `ERROR`, or `status` is `FAILED` without `success: true` and without the id of a transaction. `PENDING` never says
 * so: services send it with every good answer.
 *
 * @param idFields the names of members that may hold an id
 */
export function saysFailure(json: JsonValue | undefined, idFields: readonly string[]): boolean {
  if (!isObject(json)) return false;
  if (json.success === false) return true;
  const status = isText(json.status) ? json.status.toUpperCase() : "";
  if (status === "ERROR") return true;
  return status === "FAILED" && json.success !== true && findMember(json, idFields, isText) === undefined;
}

/** Reads the body of a failure. Its secrets are replaced before anything is read. */
export function failureDetail(secrets: readonly string[], text: string | null | undefined): FailureDetail {
  if (typeof text !== "string") return {};
  const body = maskBody(secrets, text);
  if (!isObject(body)) return { body };
  const objects = [body, body.error, body.data].filter(isObject);
  return {
    body,
    serviceCode: first(objects, ["error_code", "errorCode", "code"]),
    requestId: first(objects, ["request_id", "requestId"]),
    fields: fieldsOf(objects),
  };
}

const MAX_TEXT_CHARS = 500;
const MAX_FIELDS = 100;

function first(objects: readonly JsonObject[], names: readonly string[]): string | undefined {
  for (const object of objects) {
    for (const name of names) {
      const value = Object.hasOwn(object, name) ? object[name] : undefined;
      if (isText(value) || typeof value === "number") return String(value).slice(0, MAX_TEXT_CHARS);
    }
  }
  return undefined;
}

/** The fault of each field: a list of `{ field, issue }`, or an object of a text or a list of texts by name. */
function fieldsOf(objects: readonly JsonObject[]): Readonly<Record<string, string>> | undefined {
  const lists = objects.flatMap(({ errors, details }) => [errors, details]);
  for (const list of lists) {
    const remarks = (Array.isArray(list) ? list.map(entryOf) : Object.entries(isObject(list) ? list : {}))
      .flatMap(([name, value]) => {
        const texts = (Array.isArray(value) ? value : [value]).filter(isText);
        return isText(name) && texts.length > 0
          ? [[name, texts.join("; ").slice(0, MAX_TEXT_CHARS)] as const]
          : [];
      })
      .slice(0, MAX_FIELDS);
    if (remarks.length > 0) return Object.freeze(Object.fromEntries(remarks));
  }
  return undefined;
}

function entryOf(item: JsonValue): readonly [name: JsonValue | undefined, value: JsonValue | undefined] {
  return isObject(item) ? [item.field, item.issue ?? item.message] : [undefined, undefined];
}
