import { readFileSync } from "node:fs";
import { type AesGcmSeal, aesGcm, type SealKey } from "@payhooks/core/seal";
import { UsageError } from "../command-line/errors.ts";
import type { OptionSpec } from "../command-line/form.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";

/** The option that names the keys of a sealed inbox. */
export const SEAL_OPTION: Readonly<Record<"seal-keys", OptionSpec>> = {
  "seal-keys": {
    value: "FILE",
    help: "the keys of a sealed inbox, the current one first: one ID:BASE64 a line",
  },
};

/** The seal of the inbox, if its keys were given. */
export function sealOf(args: ParsedArguments): AesGcmSeal | undefined {
  const file = args.text("seal-keys");
  return file === undefined ? undefined : aesGcm(keysIn(file));
}

function keysIn(file: string): [SealKey, ...SealKey[]] {
  const [first, ...others] = readKeyFile(file)
    .split("\n")
    .flatMap((text, index) => {
      const line = text.trim();
      return line === "" || line.startsWith("#") ? [] : [keyIn(line, index, file)];
    });
  if (first === undefined) throw new UsageError(`There is no key in ${file}.`, KEY_LINE_FIX);
  return [first, ...others];
}

const KEY_LINE_FIX = "Write one key a line: its id, a colon, and the base64 of its 32 bytes.";

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`The keys cannot be read from ${file}: ${(error as { code?: string }).code}.`);
  }
}

/** The message does not repeat the line, because it may be a key. */
function keyIn(line: string, index: number, file: string): SealKey {
  const end = line.indexOf(":");
  const key = Buffer.from(line.slice(end + 1).trim(), "base64");
  if (end > 0 && key.length === 32) return { id: line.slice(0, end), key };
  throw new UsageError(`Line ${index + 1} of ${file} is not a key.`, KEY_LINE_FIX);
}
