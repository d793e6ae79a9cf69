import type { Context } from "hono";
import { type JsonObject, parseJsonObject } from "../json.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { ServerEnv } from "./connection.ts";

const bodyTexts = new WeakMap<Request, Promise<string>>();

/** The body as text. It is read only once, however often this is called. Throws `ERR_BODY_TOO_LARGE`. */
export function bodyText(c: Context<ServerEnv>): Promise<string> {
  const knownText = bodyTexts.get(c.req.raw);
  if (knownText) return knownText;
  const text = readBody(c.req.raw, c.get("maxBodyBytes"));
  bodyTexts.set(c.req.raw, text);
  return text;
}

/** The JSON object in the body of a request. Throws `ERR_PARAMETERS` if the body is anything else. */
export async function jsonBody(c: Context<ServerEnv>): Promise<JsonObject> {
  if (!isJson(c.req.header("content-type")))
    throw malformedBodyError("The content type must be application/json.");
  const body = parseJsonObject(await bodyText(c));
  if (body === null) throw malformedBodyError("The body must be a JSON object.");
  return body;
}

/** Like {@link jsonBody}, but an empty body counts as an empty object. */
export async function optionalJsonBody(c: Context<ServerEnv>): Promise<JsonObject> {
  return (await bodyText(c)) === "" ? {} : jsonBody(c);
}

async function readBody(request: Request, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = Number(request.headers.get("content-length") ?? 0);
  if (length > maxBytes) throw bodyTooLargeError(maxBytes);
  length = 0;
  const reader = request.body?.getReader();
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    chunks.push(part.value);
    length += part.value.length;
    if (length > maxBytes) throw bodyTooLargeError(maxBytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function bodyTooLargeError(maxBytes: number): SandboxError {
  return new SandboxError("ERR_BODY_TOO_LARGE", `The body is larger than ${maxBytes} bytes.`);
}

function malformedBodyError(message: string): SandboxError {
  return new SandboxError("ERR_PARAMETERS", message);
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(?:;|$)/i.test(contentType ?? "");
}
