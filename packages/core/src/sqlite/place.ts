import { type Stats, statSync } from "node:fs";
import type { SqliteDatabase } from "./handle.ts";

/** Thrown by a write whose file is no longer where it was. Nobody can find what was written. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

/** The place of an open file. SQLite keeps using a file that was deleted or exchanged, as if nothing had happened. */
export class FilePlace {
  /** Null if the driver does not tell the path. Then a lost file cannot be noticed. */
  readonly #path: string | null;
  readonly #opened: Stats | null;

  constructor(database: SqliteDatabase) {
    const list = database.prepare("PRAGMA database_list").all() as readonly { name: string; file: string }[];
    this.#path = list.find(({ name }) => name === "main")?.file || null;
    this.#opened = this.#look();
  }

  /** Whether the file that was opened is still the one at this path. */
  get isThere(): boolean {
    if (this.#path === null) return true;
    const now = this.#look();
    return now !== null && now.ino === this.#opened?.ino && now.dev === this.#opened.dev;
  }

  /** @throws FileGone */
  check(): void {
    if (!this.isThere) throw new FileGone("The file was deleted or exchanged.");
  }

  #look(): Stats | null {
    if (this.#path === null) return null;
    try {
      return statSync(this.#path, { throwIfNoEntry: false }) ?? null;
    } catch (error) {
      // A missing folder counts as a missing file. A folder without permission says nothing.
      const { code } = error as { code?: unknown };
      if (code === "ENOTDIR" || code === "ENOENT") return null;
      return this.#opened ?? null;
    }
  }
}
