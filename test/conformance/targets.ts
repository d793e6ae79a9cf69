/** Starts the servers that the suite is run against, each as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { type ServiceNames, serviceNames } from "@payhooks/core";
import { createTestKeys, type TestKeys } from "@payhooks/core/testing";
import { root } from "../package/workspace.ts";

export const KEYS: TestKeys = createTestKeys();
export const SECRET = "whsec_conformance_0123456789";
/** A deployment that calls nearly everything differently. */
export const NAMES: ServiceNames = serviceNames({
  callback: {
    fields: {
      payTxnId: { name: "transaction_id", sent: "always" },
      referenceId: { name: "reference", sent: "always" },
      amount: "total",
      callbackUrl: "notify_url",
      event: "kind",
      merchantId: "merchant",
      message: "note",
      providerTxId: "provider_id",
      status: "state",
      timestamp: "time",
    },
  },
  connect: { signatureHeader: "X-Zebu-Signature" },
});
/** The environment of every server. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  PAY_PUBLIC_KEY: KEYS.publicKey,
  CONNECT_WEBHOOK_SECRET: SECRET,
  PAY_NAMES: "",
};

/** A server process that has told where it listens. */
export interface Server {
  readonly port: number;
  /** Name and version of what it says that it runs on. */
  readonly runtime: string;
  /** Everything that it has printed. */
  readonly output: () => string;
  readonly process: ChildProcess;
  /** Ends it, and waits for that. SIGKILL unless it has processes of its own to end. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** How to start one. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The port, and perhaps the runtime, in what it prints. */
  readonly listening?: RegExp;
}

const LISTENING = /listening on (\d+)(?: with (.+))?\n/;

/** Starts a server, and waits until it listens. Fails with its output when it ends before. */
export async function startServer({
  command,
  args,
  cwd,
  env,
  listening = LISTENING,
}: Command): Promise<Server> {
  const child = spawn(command, args, {
    cwd: cwd ?? root,
    env: { ...process.env, NODE_ENV: "test", NO_COLOR: "1", ...ENVIRONMENT, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const match = await new Promise<RegExpExecArray>((resolve, reject) => {
    const look = (text: string): void => {
      output += text;
      const found = listening.exec(output);
      if (found !== null) resolve(found);
    };
    child.stdout.setEncoding("utf8").on("data", look);
    child.stderr.setEncoding("utf8").on("data", look);
    child.once("error", reject);
    void closed.then(() => reject(new Error(`${command} ended before it listened:\n${output}`)));
  });
  return {
    port: Number(match[1]),
    runtime: match[2] ?? "",
    output: () => output,
    process: child,
    async stop(signal = "SIGKILL") {
      child.kill(signal);
      await closed;
    },
  };
}

/** A server of this folder, run from the sources by the Node that runs the tests. */
export function onNode(file: string, ...args: readonly string[]): Command {
  const path = join(root, "test/conformance/servers", file);
  return {
    command: process.execPath,
    args: ["--conditions=payhooks-source", "--import=tsx", path, ...args],
    cwd: join(root, "test"),
  };
}
