import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  createSandbox,
  FAULT_KINDS,
  type FaultKind,
  type FaultRule,
  type Sandbox,
  SandboxError,
  STATUSES,
} from "@payhooks/sandbox";
import { CliError, UsageError } from "../command-line/errors.ts";
import type { OptionSpec } from "../command-line/form.ts";
import { readText } from "../command-line/input.ts";
import { NAMES_OPTION, readNames } from "../command-line/names.ts";
import { type ParsedArguments, parseChoice } from "../command-line/parsed-arguments.ts";

export const SANDBOX_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  port: { value: "PORT", help: "port of the sandbox; 0 picks a free one", default: "4000" },
  host: { value: "ADDRESS", help: "address to listen on", default: "127.0.0.1" },
  "allow-remote": { help: "let other machines reach the sandbox; it asks for no password" },
  "allowed-host": {
    value: "NAME",
    multiple: true,
    help: "host name of a tunnel under which its pages may be opened",
  },
  "public-url": {
    value: "URL",
    help: "base of the addresses that it hands out, such as the URL of a tunnel",
  },
  app: { value: "URL", help: "where your server listens", default: "http://127.0.0.1:3000" },
  "callback-url": {
    value: "URL",
    help: "where the callbacks go for deposits that are made on the dashboard",
    default: "<app>/callbacks/pay",
  },
  "webhook-url": {
    value: "URL",
    help: "where connected-account webhooks go",
    default: "<app>/webhooks/connect",
  },
  "webhook-secret": { value: "SECRET", help: "secret that signs webhooks", default: "made at random" },
  "private-key": {
    value: "FILE",
    help: "RSA private key in PEM that signs callbacks",
    default: "made at random",
  },
  "strict-https": {
    help: "accept only HTTPS callback addresses, as the service does; otherwise http:// to this machine is accepted too",
  },
  strict: {
    help: "refuse redirects under the names of the other call, which are otherwise taken with a warning",
  },
  ...NAMES_OPTION,
  state: {
    value: "FILE",
    help: "keep keys, ids and webhook settings across restarts; the file holds the private key",
  },
  "write-env": {
    value: "FILE",
    help: "write the variables that a receiver needs into a file such as .env.local; its other lines stay",
  },
  outcome: {
    value: "STATUS",
    help: "the status that payments get: SUCCESS, FAILED, PENDING or CANCELLED",
    default: "SUCCESS",
  },
  "delay-ms": { value: "MS", help: "time from one status to the next", default: "500" },
  "answer-timeout-ms": { value: "MS", help: "how long your server may take to answer", default: "10000" },
  attempts: { value: "N", help: "attempts to deliver, the first one included", default: "10" },
  "retry-ms": {
    value: "MS",
    help: "wait after the first failed attempt; every further wait is twice as long",
    default: "1000",
  },
  "sign-retries": {
    value: "HOW",
    help: "same: retries repeat the signed bytes; anew: retries get a new date and a new signature",
    default: "same",
  },
  fault: {
    value: "KIND[:RATE]",
    multiple: true,
    help: `break something, once or at a rate such as drop-answer:0.3; kinds: ${Object.keys(FAULT_KINDS).join(", ")}`,
  },
  seed: {
    value: "TEXT",
    help: "decides which deliveries a fault with a rate hits; the same seed repeats a run",
    default: "at random",
  },
};

/** Starts the sandbox that the options describe. */
export async function startSandbox(args: ParsedArguments): Promise<Sandbox> {
  const isStrict = args.flag("strict-https");
  const { callbackUrl, webhookUrl } = addressesOf(args, isStrict);
  const file = args.text("private-key");
  const privateKey = file === undefined ? undefined : await readText(file);
  const port = args.number("port", { max: 65_535 }) ?? 4000;
  return createSandbox({
    port,
    host: args.text("host"),
    allowRemote: args.flag("allow-remote"),
    allowedHosts: args.texts("allowed-host"),
    publicUrl: args.url("public-url")?.href,
    callbackUrl,
    settings: webhookSettings(args, webhookUrl),
    faults: args.texts("fault").map(faultOf),
    strictHttps: isStrict,
    strict: args.flag("strict"),
    names: await readNames(args),
    state: args.text("state"),
    outcome: args.choice("outcome", STATUSES),
    delayMs: args.number("delay-ms"),
    answerTimeoutMs: args.number("answer-timeout-ms", { min: 1 }),
    retry: { maxAttempts: args.number("attempts", { min: 1 }), baseMs: args.number("retry-ms") },
    signRetries: args.choice("sign-retries", ["same", "anew"]),
    seed: args.text("seed"),
    merchant: { privateKey },
  }).catch((error) => {
    throw isPortTaken(error) ? portTakenError(port) : (savedSettingError(error, args) ?? error);
  });
}

const isPortTaken = (error: unknown): boolean => (error as { code?: unknown }).code === "ERR_PORT_IN_USE";

function portTakenError(port: number): CliError {
  const fix = "If another sandbox runs, stop it. Or choose another port: --port 0 takes any that is free.";
  return new CliError("ERR_PORT_IN_USE", `Port ${port} is taken.`, fix);
}

/** The error for a setting that comes from the state file, and that the given options do not allow. */
function savedSettingError(error: unknown, args: ParsedArguments): CliError | null {
  if (!(error instanceof SandboxError) || error.code !== "ERR_PARAMETERS") return null;
  const savedFields = new Set(savedNames(args));
  const problem = error.problems.find(({ field }) => savedFields.has(field));
  if (problem === undefined) return null;
  const option = `--${problem.field.replace("_", "-")}`;
  const other = args.flag("strict-https") ? ", or leave --strict-https out" : "";
  return new UsageError(
    `The ${problem.field} that is saved in ${args.text("state")} ${problem.message}.`,
    `Give another with ${option}${other}.`,
  );
}

/** The webhook settings that come from the state file if it has them, because no option replaces them. */
export function savedNames(args: ParsedArguments): string[] {
  if (!args.flag("state")) return [];
  return [
    ...(args.flag("webhook-url") || args.flag("app") ? [] : ["webhook_url"]),
    ...(args.flag("webhook-secret") ? [] : ["webhook_secret"]),
  ];
}

type WebhookSettings = ReturnType<Sandbox["settings"]["get"]>;

/** Keeps the webhook settings of a state file, unless an option replaces them. There is always a secret. */
function webhookSettings(args: ParsedArguments, webhookUrl: string | undefined): WebhookSettings {
  const savedSettings = readSavedSettings(args.text("state"));
  const isAsked = args.flag("webhook-url") || args.flag("app");
  const url = (isAsked ? webhookUrl : (savedSettings?.webhook_url ?? webhookUrl)) ?? null;
  const givenSecret = args.text("webhook-secret");
  if (givenSecret?.trim() !== givenSecret || givenSecret === "")
    throw new UsageError("--webhook-secret must not be empty or have white space around it.");
  // The service may accept white space around a secret. So a saved one may have it.
  const secret = givenSecret ?? savedSettings?.webhook_secret ?? `whsec_${randomBytes(24).toString("hex")}`;
  const isEnabled = isAsked || (savedSettings?.webhook_enabled ?? true);
  return { webhook_url: url, webhook_secret: secret, webhook_enabled: isEnabled && url !== null };
}

/** The webhook settings in a state file. Undefined if it holds none: `createSandbox` says what is wrong with a file. */
function readSavedSettings(file: string | undefined): WebhookSettings | undefined {
  if (file === undefined) return undefined;
  try {
    const { connect }: { connect?: { settings?: WebhookSettings } } = JSON.parse(readFileSync(file, "utf8"));
    return connect?.settings;
  } catch {
    return undefined;
  }
}

function addressesOf(
  args: ParsedArguments,
  isStrict: boolean,
): { callbackUrl: string | undefined; webhookUrl: string | undefined } {
  const app = (args.url("app")?.href ?? "http://127.0.0.1:3000").replace(/\/+$/, "");
  // --strict-https refuses plain HTTP, so an app without HTTPS has no default addresses.
  const usual = (path: string): string | undefined =>
    isStrict && app.startsWith("http:") ? undefined : app + path;
  return {
    callbackUrl: args.url("callback-url")?.href ?? usual("/callbacks/pay"),
    webhookUrl: args.url("webhook-url")?.href ?? usual("/webhooks/connect"),
  };
}

function faultOf(text: string): FaultRule {
  const [name = "", rate] = text.split(":");
  const kind = parseChoice("--fault", name, Object.keys(FAULT_KINDS) as FaultKind[]);
  if (rate === undefined) return { kind };
  const share = Number(rate);
  if (!(share > 0 && share <= 1)) {
    throw new UsageError(`The rate in --fault ${text} must be above 0 and at most 1, such as ${kind}:0.3.`);
  }
  return { kind, rate: share };
}
