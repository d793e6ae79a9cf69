/** `npm start -- --once --crash`: a deposit is accepted, its process is killed, and the next one handles it, once. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import type { Said } from "./crash-merchant.ts";

const MAX_WAIT_MS = 20_000;

/** Shows it line by line. The exit code: 0 only if the handler began twice and ended once, under one effectId. */
export async function showCrash(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-crash-"));
  const file = join(folder, "payhooks.db");
  const { publicKey, privateKey } = createTestKeys();
  const deposit = signPaymentCallback(
    callbackFields({ referenceId: "order-2001", amount: "250.000000" }),
    privateKey,
  );
  const merchants: Merchant[] = [];
  const start = async (handler: "slow" | "quick"): Promise<Merchant> => {
    const merchant = new Merchant({ PAY_PUBLIC_KEY: publicKey, PAYHOOKS_FILE: file, HANDLER: handler });
    merchants.push(merchant);
    await merchant.hears("listens");
    print(merchant, `listens; its inbox is ${file}`);
    return merchant;
  };
  try {
    const first = await start("slow");
    await send(first, deposit, "a deposit over 250.000000 for order-2001");
    await first.hears("begins");
    await first.kill();
    print(first, "killed (SIGKILL) before its handler ended");

    const second = await start("quick");
    await second.hears("ends");
    await send(second, deposit, "the same deposit again");
    print(second, `stopped, with ${await second.stop()} events unfinished`);

    const runs = merchants.flatMap(({ said }) => said);
    const idsOf = (what: "begins" | "ends") =>
      runs.flatMap((run) => (run.what === what ? [run.effectId] : []));
    const ids = new Set([...idsOf("begins"), ...idsOf("ends")]);
    const ok = idsOf("begins").length === 2 && idsOf("ends").length === 1 && ids.size === 1;
    console.log(
      `\nThe handler began ${idsOf("begins").length} times and ended ${idsOf("ends").length} time(s),`,
    );
    console.log(`each time with the effectId ${[...ids].join(" and ")}.`);
    console.log(ok ? "Accepted once, handled once." : "That is not what should have happened.");
    return ok ? 0 : 1;
  } catch (error) {
    console.error(`That is not what should have happened: ${String(error)}`);
    return 1;
  } finally {
    for (const merchant of merchants) await merchant.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A process with a receiver. */
class Merchant {
  readonly said: Said[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #onSaid: () => void = () => {};

  constructor(environment: Readonly<Record<string, string>>) {
    this.#child = fork(fileURLToPath(new URL("crash-merchant.ts", import.meta.url)), {
      env: { ...process.env, ...environment },
    });
    this.#child.on("message", (message) => {
      const said = message as Said;
      this.said.push(said);
      if (said.what === "begins") print(this, `handler begins, attempt ${said.attempt}, ${said.effectId}`);
      if (said.what === "ends") print(this, `handler ends,   attempt ${said.attempt}, ${said.effectId}`);
      this.#onSaid();
    });
    this.#exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
  }

  get name(): string {
    return `process ${this.#child.pid}`;
  }

  /** Waits until it says something. */
  async hears<What extends Said["what"]>(what: What): Promise<Extract<Said, { readonly what: What }>> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.name} never said "${what}"`)), MAX_WAIT_MS);
    });
    const heard = new Promise<Extract<Said, { readonly what: What }>>((resolve) => {
      this.#onSaid = () => {
        const found = this.said.find((said) => said.what === what);
        if (found !== undefined) resolve(found as Extract<Said, { readonly what: What }>);
      };
      this.#onSaid();
    });
    const ended = this.#exited.then(() => Promise.reject(new Error(`${this.name} ended too early`)));
    try {
      return await Promise.race([heard, late, ended]);
    } finally {
      clearTimeout(timer);
    }
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  async stop(): Promise<number> {
    this.#child.send("stop");
    const { unfinished } = await this.hears("stopped");
    await this.#exited;
    return unfinished;
  }
}

async function send(to: Merchant, { headers, rawBody }: SignedDelivery, what: string): Promise<void> {
  const { port } = await to.hears("listens");
  const url = `http://127.0.0.1:${port}/callbacks/pay`;
  const response = await fetch(url, { method: "POST", headers, body: rawBody });
  print({ name: "the service" }, `sends ${what}: ${response.status} ${await response.text()}`);
  if (response.status !== 200) throw new Error("the deposit was not accepted");
}

function print({ name }: { readonly name: string }, what: string): void {
  console.log(`${name.padEnd(16)} ${what}`);
}
