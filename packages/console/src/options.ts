import { PayhooksError } from "@payhooks/core";

/** What somebody may do in the console. Each right is given by itself; nothing is seen without `view`. */
export type ConsoleRight = "view" | "replay" | "discard";

/** Who uses the console, and what they may do. */
export interface ConsoleUser {
  /** Kept with every decision that they make: a name or an address that your colleagues know. */
  readonly by: string;
  readonly can: readonly ConsoleRight[];
}

/** Options of {@link payhooksConsole}. */
export interface ConsoleOptions<Given = Request> {
  /**
   * Asked with every request, the live updates included. Null refuses it with 403. What it throws, and an answer that is
   * none, refuse it with 500.
   */
  readonly authorize: (request: Given) => ConsoleUser | null | Promise<ConsoleUser | null>;
  /**
   * Names of fields that never leave the server, at any depth of a body. Their values are taken out of errors and notes
   * too. `signature` is always among them.
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
  if (authorize === undefined) {
    throw new PayhooksError("ERR_OPTION_MISSING", "The console was given no authorize.", {
      fix: "Pass authorize: (request) => ({ by, can }) for somebody who may see payments, or null: whoever it lets in can see them, and replay or discard them.",
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

/** What `authorize` answered; undefined for an answer that is none, which lets nobody in. */
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
