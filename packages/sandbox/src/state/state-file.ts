import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import type { ConnectState } from "../connect/connect.ts";
import type { DeliveryRecord } from "../deliveries/delivery.ts";
import type { Merchant } from "../keys/merchant.ts";
import type { Script } from "../payments/outcomes.ts";
import type { TransactionRecord } from "../payments/transactions.ts";
import { SandboxError } from "../sandbox-error.ts";

/** The state that survives a restart. Faults do not, since they are meant for the moment. */
export interface Snapshot {
  readonly version: 1;
  readonly merchant: Merchant;
  /** PEM. */
  readonly privateKey: string;
  readonly keyCreatedAt: number;
  readonly connect: ConnectState;
  readonly scripts: readonly Script[];
  readonly transactions: readonly TransactionRecord[];
  readonly deliveries: readonly DeliveryRecord[];
}

export interface StateFile {
  /** Writes the present state soon. Many calls in a row cause few writes. */
  touch(): void;
  /** Resolves once all changes before the call are on the disk. Rejects if the last write failed. */
  flush(): Promise<void>;
}

/** Reads the snapshot in a file. Null if there is no file yet. If the file is unusable, it throws `ERR_STATE_FILE`. */
export function readState(path: string): Snapshot | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new SandboxError("ERR_STATE_FILE", `The state file ${path} cannot be read.`, { cause });
  }
  try {
    const snapshot: Snapshot = JSON.parse(text);
    if (snapshot.version === 1) return snapshot;
  } catch (cause) {
    throw new SandboxError("ERR_STATE_FILE", unusable(path), { cause });
  }
  throw new SandboxError("ERR_STATE_FILE", unusable(path));
}

/** Every write goes to a new file, which then replaces the old one. So the file is complete at every moment. */
export function createStateFile(path: string, take: () => Snapshot): StateFile {
  let isTouched = false;
  let writing: Promise<void> | undefined;
  let failure: unknown;

  const write = async (): Promise<void> => {
    const temporary = `${path}.${randomUUID()}.tmp`;
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(`${JSON.stringify(take())}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      failure = undefined;
    } catch (error) {
      failure = error;
      await rm(temporary, { force: true });
    }
  };

  const run = async (): Promise<void> => {
    while (isTouched) {
      isTouched = false;
      await write();
    }
    writing = undefined;
  };

  return {
    touch() {
      isTouched = true;
      writing ??= Promise.resolve().then(run);
    },
    async flush() {
      await writing;
      if (failure === undefined) return;
      throw new SandboxError("ERR_STATE_FILE", `The state file ${path} cannot be written.`, {
        cause: failure,
      });
    },
  };
}

function unusable(path: string): string {
  return `The state file ${path} is not one of this sandbox. Repair it, or delete it to start from scratch.`;
}
