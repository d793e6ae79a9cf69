import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isJsonObject } from "../json.ts";
import type { Merchant } from "../keys/merchant.ts";
import { readSigningKey } from "../keys/signing-keys.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { WebhookSettings } from "../wire.ts";

/** The state that survives a restart: everything that a receiver and a client are set up with. */
export interface SavedState {
  readonly version: 2;
  readonly merchant: Merchant;
  /** PEM. */
  readonly privateKey: string;
  readonly keyCreatedAt: number;
  readonly connect: { readonly settings: WebhookSettings };
}

/** Reads a file. Null if there is none yet. If it is unusable, it throws `ERR_STATE_FILE`. */
export function readState(path: string): SavedState | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    const message = `The state file ${path} cannot be read (${code}). Check that it is a file, and that you may read it.`;
    throw new SandboxError("ERR_STATE_FILE", message, { cause });
  }
  const unusable = `${path} is not a state file of the sandbox, or it is damaged. Give another file, or delete it to start with new keys.`;
  try {
    const state: unknown = JSON.parse(text);
    if (isState(state)) {
      readSigningKey(state.privateKey, state.keyCreatedAt);
      return state;
    }
  } catch (cause) {
    throw new SandboxError("ERR_STATE_FILE", unusable, { cause });
  }
  throw new SandboxError("ERR_STATE_FILE", unusable);
}

const MERCHANT_MEMBERS = ["merchantId", "masterMerchantId", "userId", "apiKey", "connectApiKey"] as const;

function isState(value: unknown): value is SavedState {
  if (!isJsonObject(value) || value.version !== 2) return false;
  const { merchant, privateKey, keyCreatedAt, connect } = value;
  if (!isJsonObject(merchant) || !MERCHANT_MEMBERS.every((id) => typeof merchant[id] === "string"))
    return false;
  if (!isJsonObject(connect) || !isJsonObject(connect.settings)) return false;
  return (
    typeof privateKey === "string" &&
    typeof keyCreatedAt === "number" &&
    typeof connect.settings.webhook_enabled === "boolean"
  );
}

/** Writes to a new file, which then replaces the old one. So the file is complete at every moment. */
export function writeState(path: string, state: SavedState): void {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    writeFileSync(temporary, `${JSON.stringify(state)}\n`, { flag: "wx", mode: 0o600 });
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    const { code, message: why } = cause as NodeJS.ErrnoException;
    const message = `The state file ${path} cannot be written (${code ?? why}). Check that its folder exists, and that you may write there.`;
    throw new SandboxError("ERR_STATE_FILE", message, { cause });
  }
}
