import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Scope, withScope } from "./scope.ts";

/** A small disk of a test's own, in memory, which can be filled. It goes once whoever has files on it has let go of them. */
export class Disk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Null where the test may not mount one: only root may. */
  static make(scope: Scope, size: string): Disk | null {
    const folder = scope.add(mkdtempSync(join(tmpdir(), "payhooks-disk-")), (path) =>
      rmSync(path, { recursive: true, force: true }),
    );
    if (!run("mount", "-t", "tmpfs", "-o", `size=${size},mode=777`, "tmpfs", folder)) return null;
    scope.add(folder, (path) => run("umount", "-l", path));
    return new Disk(folder);
  }

  get #filler(): string {
    return join(this.folder, "other");
  }

  /** Another program writes until there is no room left. */
  fill(): void {
    run("dd", "if=/dev/zero", `of=${this.#filler}`, "bs=4096");
  }

  clear(): void {
    rmSync(this.#filler, { force: true });
  }
}

/** Lets nobody write to these files any more, or lets them again. False where that cannot be had. */
export function freeze(files: readonly string[], isFrozen: boolean): boolean {
  return run("chattr", isFrozen ? "+i" : "-i", ...files);
}

function run(command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** True if tests may have disks of their own. */
export async function mayMakeDisks(): Promise<boolean> {
  const mayMake = await withScope(async (scope) => Disk.make(scope, "64k") !== null);
  if (!mayMake) console.log("the tests on disks of their own are left out: only root may mount one");
  return mayMake;
}
