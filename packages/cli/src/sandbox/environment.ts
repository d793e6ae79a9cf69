import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { Sandbox } from "@payhooks/sandbox";
import { CliError, UsageError } from "../command-line/errors.ts";

/** The variables that a receiver and a client need to talk to the sandbox. */
export function environmentOf(sandbox: Sandbox): Record<string, string> {
  const { publicKey, apiKey, connectApiKey, merchantId } = sandbox.keys;
  const [apiPublicKey = "", apiSecretKey = ""] = apiKey.split(":");
  return {
    PAY_PUBLIC_KEY: publicKey.trim(),
    CONNECT_WEBHOOK_SECRET: sandbox.settings.get().webhook_secret ?? "",
    PAY_BASE_URL: sandbox.url,
    PAY_API_PUBLIC_KEY: apiPublicKey,
    PAY_API_SECRET_KEY: apiSecretKey,
    PAY_CONNECT_API_KEY: connectApiKey,
    PAY_MERCHANT_ID: merchantId,
  };
}

/** The names of the variables, for the help and the documentation. */
export const VARIABLE_NAMES = [
  "PAY_PUBLIC_KEY",
  "CONNECT_WEBHOOK_SECRET",
  "PAY_BASE_URL",
  "PAY_API_PUBLIC_KEY",
  "PAY_API_SECRET_KEY",
  "PAY_CONNECT_API_KEY",
  "PAY_MERCHANT_ID",
] as const;

/**
 * An assignment with all of its lines. As in dotenv, a value in quotes may have several, if nothing but a comment follows
 * the closing quote on its line. Otherwise the quote is a character like others, and the value ends with its line.
 */
const ASSIGNMENT_PATTERN =
  /^[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_]\w*)[^\S\n]*=[^\S\n]*(?:(?:"(?:\\[\s\S]|[^"\\])*"|'[^']*'|`[^`]*`)[^\S\n]*(?:#[^\n]*)?(?=\n|$)|[^\n]*)(?:\n|$)/gm;

/** Refuses a secret that programs would read differently from a file. It may come from a state file. */
export function checkSecret(secret: string, stateFile: string | null): void {
  if (!/["\\$]/.test(secret)) return;
  const secretName =
    stateFile === null ? "--webhook-secret" : `The webhook_secret that is saved in ${stateFile}`;
  throw new UsageError(
    `${secretName} has a character that .env files change (" \\ $).`,
    stateFile === null
      ? "Use letters and digits."
      : "Give another with --webhook-secret: letters and digits.",
  );
}

/** Writes variables into a file of `NAME="value"` lines. Lines with other names, and comments, stay as they are. */
export function writeEnvironment(file: string, variables: Readonly<Record<string, string>>): void {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    const before = existsSync(file) ? readFileSync(file, "utf8") : "";
    const eol = before.includes("\r\n") ? "\r\n" : "\n";
    const names = new Set(Object.keys(variables));
    const keptText = before
      .replace(ASSIGNMENT_PATTERN, (lines, name: string) => (names.has(name) ? "" : lines))
      .replace(/[\r\n]+$/, "");
    const newLines = Object.entries(variables).map(
      ([name, value]) => `${name}="${value.replaceAll("\n", "\\n")}"`,
    );
    // A new file replaces the old one, so that a reader sees one or the other, and never a half.
    writeFileSync(temporary, `${[...(keptText === "" ? [] : [keptText]), ...newLines].join(eol)}${eol}`, {
      mode: 0o600,
    });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CliError(
      "ERR_ENV_FILE",
      `${file} cannot be written: ${code ?? message}.`,
      "Check that its folder exists.",
    );
  }
}
