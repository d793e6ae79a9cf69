/** What the exit code says. */
export const EXIT = { ok: 0, failure: 1, usage: 2 } as const;

/** Anything that is told to the user in a line or two, without a stack trace. */
export class CliError extends Error {
  readonly code: string;
  /** What to do about it; empty when the message says it. */
  readonly fix: string;
  readonly exitCode: number;

  constructor(code: string, message: string, fix = "", exitCode: number = EXIT.failure) {
    super(message);
    this.name = "CliError";
    this.code = code;
    this.fix = fix;
    this.exitCode = exitCode;
  }
}

/** The command line itself is wrong: exit code 2. */
export class UsageError extends CliError {
  constructor(message: string, fix = "") {
    super("ERR_USAGE", message, fix, EXIT.usage);
  }
}

/** An error as it is told: ours, Payhooks' or the sandbox's. Null for what nobody expected. */
export function tellable(error: unknown): CliError | null {
  if (error instanceof CliError) return error;
  if (!(error instanceof Error)) return null;
  const { code, fix } = error as { code?: unknown; fix?: unknown };
  if (typeof code !== "string" || !["PayhooksError", "SandboxError"].includes(error.name)) return null;
  // A PayhooksError ends its message with its fix.
  const hint = typeof fix === "string" ? fix : "";
  const message = hint === "" ? error.message : error.message.slice(0, -hint.length).trimEnd();
  return new CliError(code, message, hint, WRONG_INPUT.test(code) ? EXIT.usage : EXIT.failure);
}

/** Codes that say that an option's value cannot be right. */
const WRONG_INPUT = /^ERR_(?:OPTION_|KEY_|SECRET_|HOST_NOT_LOOPBACK|PARAMETERS)/;
