import type { Context } from "hono";
import { type Problem, SandboxError } from "../sandbox-error.ts";

/**
 * Answers with an error. The specification shows no body for 400, 401 and 500. This one has the envelope of the
 * specification's not-found answer, and adds which parameters are wrong.
 */
export function failure(
  c: Context,
  status: 400 | 401 | 403 | 404 | 409 | 413 | 500,
  message: string,
  problems: readonly Problem[] = [],
): Response {
  return c.json(
    { success: false, data: { message, ...(problems.length > 0 && { errors: problems }) } },
    status,
  );
}

export function success(c: Context, data: unknown): Response {
  return c.json({ success: true, data });
}

/** The answer to a call that threw an error. */
export function failureOf(c: Context, error: unknown): Response {
  if (!(error instanceof SandboxError)) {
    return failure(c, 500, `Server error: the sandbox itself failed. ${String(error)}`);
  }
  if (error.code === "ERR_PARAMETERS") return failure(c, 400, error.message, error.problems);
  if (error.code === "ERR_BODY_TOO_LARGE") return failure(c, 413, error.message);
  if (error.code === "ERR_NOT_FOUND") return failure(c, 404, error.message);
  if (error.code === "ERR_NOT_POSSIBLE") return failure(c, 409, error.message);
  return failure(c, 500, error.message);
}
