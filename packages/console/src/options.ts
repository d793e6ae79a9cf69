import { PayhooksError } from "@payhooks/core";
import { checkNames } from "@payhooks/core/adapter";
import { hostName } from "@payhooks/pages";

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
   * The host names under which the console answers, such as `admin.shop.example`, besides those of this machine
   * (`localhost`, `127.0.0.1`, `[::1]`). Ports do not matter. Behind a proxy, it is the name in the Host header that
   * arrives. Without this, a page of another site could have its own name point to this server, and then read and
   * decide everything (DNS rebinding).
   */
  readonly allowedHosts?: readonly string[] | undefined;
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
  const { authorize, redact = [], allowedHosts = [] } = (options ?? {}) as Partial<ConsoleOptions<Given>>;
  checkNames("The console", options ?? {}, { authorize: true, allowedHosts: true, redact: true });
  if (authorize === undefined) {
    throw new PayhooksError("ERR_OPTION_MISSING", "The console was given no authorize.", {
      fix: "Pass authorize: (request) => ({ by, can }) for users who may see payments, and null for all others. The users that it lets in can see payments, and replay or discard them.",
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
  const wrongHosts = Array.isArray(allowedHosts)
    ? allowedHosts.filter((host) => !isHostName(host))
    : [allowedHosts];
  if (wrongHosts.length > 0) {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `allowedHosts must be a list of host names, and has ${JSON.stringify(wrongHosts[0])?.slice(0, 80) ?? typeof wrongHosts[0]}.`,
      {
        fix: 'Write each name alone, without a scheme, a path or a wildcard: allowedHosts: ["admin.shop.example"].',
      },
    );
  }
  if (!Array.isArray(redact) || !redact.every((name) => typeof name === "string" && name !== "")) {
    throw new PayhooksError("ERR_OPTION_INVALID", "redact must be a list of names of fields.", {
      fix: 'Write redact: ["userId"].',
    });
  }
}

/** True if a text is a host name or address, perhaps with a port. A wildcard is none: it may hold more than its writer thinks. */
function isHostName(text: unknown): boolean {
  return typeof text === "string" && !text.includes("*") && hostName(text) !== null;
}

/** The user that `authorize` answered with, or null. Undefined if the answer is neither: then access is denied. */
export function userOf(answer: unknown): ConsoleUser | null | undefined {
  if (answer === null) return null;
  const { by, can: rights } = (answer ?? {}) as Partial<ConsoleUser>;
  const isUser =
    typeof by === "string" &&
    by.trim() !== "" &&
    Array.isArray(rights) &&
    rights.every((right) => RIGHTS.has(right));
  return isUser ? { by, can: rights } : undefined;
}
