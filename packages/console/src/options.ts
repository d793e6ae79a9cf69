import { PayhooksError } from "@payhooks/core";
import { checkNames } from "@payhooks/core/adapter";

/** A right in the console. Each right is given separately, and nobody can do anything without `view`. */
export type ConsoleRight = "view" | "replay" | "discard";

/** A user of the console, and the user's rights. */
export interface ConsoleUser {
  /** A name or an address that your colleagues know. It is kept with every decision of this user. */
  readonly by: string;
  readonly can: readonly ConsoleRight[];
}

/** Options of {@link payhooksConsole}. */
export interface ConsoleOptions<Given = Request> {
  /**
   * Says who sends a request. It is called for every request, live updates included. If it answers null, the request is
   * refused with 403. If it throws, or answers anything else, the request is refused with 500.
   */
  readonly authorize: (request: Given) => ConsoleUser | null | Promise<ConsoleUser | null>;
  /**
   * The names of fields that never leave the server, at any depth of a body. Their values are removed from errors and
   * notes too. `signature` is always one of them.
   */
  readonly redact?: readonly string[] | undefined;
}

const RIGHTS: ReadonlySet<unknown> = new Set<ConsoleRight>(["view", "replay", "discard"]);

/**
 * Checks the options.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 */
export function checkOptions<Given>(options: ConsoleOptions<Given>): void {
  const { authorize, redact = [] } = (options ?? {}) as Partial<ConsoleOptions<Given>>;
  checkNames("The console", options ?? {}, { authorize: true, redact: true });
  if (authorize === undefined) {
    throw new PayhooksError("ERR_OPTION_MISSING", "The console was given no authorize.", {
      fix: "Pass authorize: (request) => ({ by, can }) for users who may see payments, and null for all others. Whoever it lets in can see payments, and replay or discard them.",
    });
  }
  if (typeof authorize !== "function") {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `authorize must be a function, and is ${typeof authorize}.`,
      {
        fix: "Pass authorize: (request) => ({ by, can }) or null, or a promise of either.",
      },
    );
  }
  if (!Array.isArray(redact) || !redact.every((name) => typeof name === "string" && name !== "")) {
    throw new PayhooksError("ERR_OPTION_INVALID", "redact must be a list of names of fields.", {
      fix: 'Write redact: ["userId"].',
    });
  }
}

/** The user that `authorize` answered with, or null. Undefined if the answer is neither, which lets nobody in. */
export function userOf(answer: unknown): ConsoleUser | null | undefined {
  if (answer === null) return null;
  const { by, can } = (answer ?? {}) as Partial<ConsoleUser>;
  const isUser =
    typeof by === "string" &&
    by.trim() !== "" &&
    Array.isArray(can) &&
    can.every((right) => RIGHTS.has(right));
  return isUser ? { by, can } : undefined;
}
