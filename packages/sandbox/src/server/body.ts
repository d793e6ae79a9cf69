import type { Context } from "hono";
import { type JsonObject, parseJsonObject } from "../json.ts";
import { SandboxError } from "../sandbox-error.ts";

/** The JSON object that a request carries. Throws `ERR_PARAMETERS` when it carries anything else. */
export async function jsonBody(c: Context): Promise<JsonObject> {
  if (!isJson(c.req.header("content-type"))) throw malformed("The content type must be application/json.");
  const body = parseJsonObject(await c.req.text());
  if (body === null) throw malformed("The body must be a JSON object.");
  return body;
}

/** As {@link jsonBody}, but no body at all is an empty object. */
export async function optionalJsonBody(c: Context): Promise<JsonObject> {
  const text = await c.req.text();
  if (text === "") return {};
  return jsonBody(c);
}

function malformed(message: string): SandboxError {
  return new SandboxError("ERR_PARAMETERS", message, { problems: [] });
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(?:;|$)/i.test(contentType ?? "");
}
