import type { Context } from "hono";
import { type Problem, SandboxError } from "../sandbox-error.ts";

/** The service's own code of an error, by HTTP status. The specification shows none. */
const ERROR_CODES = {
  400: "INVALID_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  409: "CONFLICT",
  413: "TOO_LARGE",
  500: "SERVER_ERROR",
} as const;

/**
 * Answers with an error. The specification shows no body for 400, 401 and 500. So this one has what clients of such
 * services read: `status`, `message` and `error_code`. `data` has the envelope of the specification's not-found answer,
 * and says which parameters are wrong.
 */
export function answerFailure(
  c: Context,
  status: keyof typeof ERROR_CODES,
  message: string,
  problems: readonly Problem[] = [],
): Response {
  const errors: Record<string, string[]> = {};
  for (const { field, message: text } of problems) errors[field] = [...(errors[field] ?? []), text];
  const hasErrors = problems.length > 0;
  return c.json(
    {
      success: false,
      status: "ERROR",
      message,
      error_code: ERROR_CODES[status],
      ...(hasErrors && { errors }),
      data: { message, ...(hasErrors && { errors: problems }) },
    },
    status,
  );
}

export function answerSuccess(c: Context, data: unknown): Response {
  return c.json({ success: true, data });
}

/** The answer to a call that threw an error. */
export function answerError(c: Context, error: unknown): Response {
  if (!(error instanceof SandboxError)) {
    return answerFailure(c, 500, `Server error: the sandbox itself failed. ${String(error)}`);
  }
  if (error.code === "ERR_PARAMETERS") return answerFailure(c, 400, error.message, error.problems);
  if (error.code === "ERR_BODY_TOO_LARGE") return answerFailure(c, 413, error.message);
  if (error.code === "ERR_NOT_FOUND") return answerFailure(c, 404, error.message);
  if (error.code === "ERR_NOT_POSSIBLE") return answerFailure(c, 409, error.message);
  return answerFailure(c, 500, error.message);
}
