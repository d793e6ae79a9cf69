import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { readSigningKey } from "../keys/signing-keys.ts";
import { SandboxError } from "../sandbox-error.ts";
import { isSnapshot, type Snapshot } from "./snapshot.ts";

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
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    const message = `The state file ${path} cannot be read (${code}). Is it a file, and may you read it?`;
    throw new SandboxError("ERR_STATE_FILE", message, { cause });
  }
  const unusable = `${path} is not a state file of the sandbox, or it is damaged. Give another file, or delete it to start with new keys.`;
  try {
    const snapshot: unknown = JSON.parse(text);
    if (isSnapshot(snapshot)) {
      readSigningKey(snapshot.privateKey, snapshot.keyCreatedAt);
      return snapshot;
    }
  } catch (cause) {
    throw new SandboxError("ERR_STATE_FILE", unusable, { cause });
  }
  throw new SandboxError("ERR_STATE_FILE", unusable);
}

/** Every write goes to a new file, which then replaces the old one. So the file is complete at every moment. */
export function createStateFile(path: string, take: () => Snapshot): StateFile {
  let isTouched = false;
  let writing: Promise<void> | undefined;
  let failure: NodeJS.ErrnoException | undefined;

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
      failure = error as NodeJS.ErrnoException;
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
      const message = `The state file ${path} cannot be written (${failure.code ?? failure.message}). Does its folder exist, and may you write there?`;
      throw new SandboxError("ERR_STATE_FILE", message, { cause: failure });
    },
  };
}
