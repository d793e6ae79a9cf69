import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { inject } from "vitest";
import { type ChildConfig, CONFIG_VARIABLE, type FromChild } from "./child-config.ts";
import { type Scope, until } from "./scope.ts";

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** How a process ended. */
interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process under test. */
export class ProcessUnderTest {
  readonly exited: Promise<Exit>;
  exit: Exit | null = null;
  readonly #child: ChildProcess;
  #listening = false;
  #worked: Extract<FromChild, { type: "worked" }> | null = null;

  private constructor(child: ChildProcess) {
    this.#child = child;
    running.add(child);
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        running.delete(child);
        this.exit = { code, signal };
        resolve(this.exit);
      });
    });
    child.on("message", (message: FromChild) => {
      if (message.type === "listening") this.#listening = true;
      else this.#worked = message;
    });
  }

  /** Starts a process and waits until it listens. It ends with the scope at the latest. */
  static async start(
    scope: Scope,
    config: ChildConfig,
    { shiftMs = 0 }: { readonly shiftMs?: number } = {},
  ): Promise<ProcessUnderTest> {
    const one = ProcessUnderTest.spawn(scope, config, { shiftMs });
    await one.listening();
    return one;
  }

  static spawn(
    scope: Scope,
    config: ChildConfig,
    { shiftMs = 0 }: { readonly shiftMs?: number } = {},
  ): ProcessUnderTest {
    const bundle = inject("faultsBundle");
    const preload = shiftMs === 0 ? [] : ["--import", pathToFileURL(bundle.shiftedClock).href];
    const child = spawn(process.execPath, [...preload, bundle.child], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: {
        ...process.env,
        NODE_ENV: "production",
        [CONFIG_VARIABLE]: JSON.stringify(config),
        PAYHOOKS_SHIFT_MS: String(shiftMs),
      },
    });
    return scope.add(new ProcessUnderTest(child), (one) => one.kill());
  }

  async listening(): Promise<void> {
    await until("the process listens", () => this.#listening || this.exit !== null, {
      withinMs: 30_000,
      everyMs: 5,
    });
    if (this.#listening || this.exit === null) return;
    const { code, signal } = this.exit;
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    throw new Error(
      `the process ended ${how} before it listened; what it wrote is in the output of this run`,
    );
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async kill(): Promise<Exit> {
    if (this.exit === null) {
      this.#child.kill("SIGCONT");
      this.#child.kill("SIGKILL");
    }
    return this.exited;
  }

  /** Asks it to end and waits until it has. */
  async terminate(): Promise<Exit> {
    this.#child.kill("SIGTERM");
    return this.exited;
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  get isFrozen(): boolean {
    return spawnSync("ps", ["-o", "state=", "-p", String(this.pid)], { encoding: "utf8" }).stdout.startsWith(
      "T",
    );
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** `receiver.work()` in that process. */
  async work(): Promise<{ readonly ran: number; readonly failed: number }> {
    this.#worked = null;
    this.#child.send({ type: "work" });
    return until("the process has worked", () => this.#worked);
  }
}
