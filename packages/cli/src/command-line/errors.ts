import { inspect } from "node:util";
import { printText } from "./printer.ts";

/** The exit codes. */
export const EXIT = { ok: 0, failure: 1, usage: 2 } as const;

/** An error that the user sees as a line or two, without a stack trace. */
export class CliError extends Error {
  readonly code: string;
  /** How to fix it. Empty if the message says it already. */
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

/** The error for a server, such as a database, that cannot be opened. */
export function unavailableError(
  code: string,
  server: string,
  why = "it does not answer",
  fix = "Check that it runs, and that the address and the password are right.",
): CliError {
  return new CliError(code, `${server} cannot be opened: ${why}.`, fix);
}

/**
 * The error for a server that cannot be opened, in the words of an error of Payhooks. The text of another error may
 * contain data of a statement, so only its code is printed.
 */
export function unavailableErrorFromCause(code: string, server: string, error: unknown): CliError {
  const { name, message, fix, code: causeCode } = error as Readonly<Record<string, unknown>>;
  if (name !== "PayhooksError" || typeof fix !== "string") {
    return unavailableError(code, server, typeof causeCode === "string" ? causeCode : undefined);
  }
  const text = String(message).slice(0, -fix.length).trim();
  return unavailableError(
    code,
    server,
    text.replace(/^PostgreSQL cannot be opened: /, "").replace(/\.$/, ""),
    fix,
  );
}

/** Tells the user about a value that was thrown. It may be any value, even one that throws when it is read. */
export function cliErrorOf(error: unknown): CliError {
  try {
    return knownError(error) ?? unexpectedError(error);
  } catch {
    return new CliError("ERR_UNEXPECTED", "Something was thrown that cannot be read.");
  }
}

function unexpectedError(error: unknown): CliError {
  if (process.env.PAYHOOKS_DEBUG !== undefined) printText("stderr", `${inspect(error)}\n`);
  const message = error instanceof Error ? error.message : String(error);
  return new CliError("ERR_UNEXPECTED", message, "Set PAYHOOKS_DEBUG=1 to see where it comes from.");
}

/** The error as a {@link CliError} if the command line, Payhooks or the sandbox threw it. Null for any other error. */
function knownError(error: unknown): CliError | null {
  if (error instanceof CliError) return error;
  if (!(error instanceof Error)) return null;
  if (typeof (error as { code?: unknown }).code !== "string") return null;
  if (!["PayhooksError", "SandboxError"].includes(error.name)) return null;
  const { code, message, fix } = errorPartsOf(error as Error & { readonly code: string });
  return new CliError(code, message, fix, INPUT_ERROR_CODE_PATTERN.test(code) ? EXIT.usage : EXIT.failure);
}

/** The code, message and fix of an error of Payhooks, whose own message ends with its fix. */
export function errorPartsOf(error: Error & { readonly code: string; readonly fix?: unknown }): {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
} {
  const fix = typeof error.fix === "string" ? error.fix : "";
  const message = fix === "" ? error.message : error.message.slice(0, -fix.length).trimEnd();
  const { code } = (error.cause ?? {}) as { readonly code?: unknown };
  // The keys of an inbox are an option of the receiver, and here one of the command.
  if (code === "ERR_SEAL_KEY_MISSING") return { code, message, fix: SEAL_KEYS_FIX };
  if (code === "ERR_SEAL_BROKEN") return { code, message, fix };
  return { code: error.code, message, fix };
}

const SEAL_KEYS_FIX =
  "Give the keys of the inbox with --seal-keys FILE, this one among them: one ID:BASE64 a line.";

/** The codes for an option whose value cannot be right. */
const INPUT_ERROR_CODE_PATTERN = /^ERR_(?:OPTION_|NAMES_|KEY_|SECRET_|HOST_NOT_LOOPBACK|PARAMETERS)/;
