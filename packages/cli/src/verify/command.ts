import { serviceNames } from "@payhooks/core";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { readBytes, readText } from "../command-line/input.ts";
import { NAMES_OPTION, readNames } from "../command-line/names.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { explainCallback } from "./callback.ts";
import type { Explanation } from "./explanation.ts";
import { explainWebhook } from "./webhook.ts";

export const verifyCommand: Command = {
  name: "verify",
  summary: "Check the signature of a saved delivery, and explain why it fails",
  usage: [
    "--key PUBLIC.pem BODY.json [OTHER.json …]",
    "--secret SECRET --header VALUE BODY.json [OTHER.json …]",
  ],
  options: {
    key: {
      value: "FILE",
      multiple: true,
      help: "public key in PEM, for payment callbacks; if it is left out, PAY_PUBLIC_KEY is used",
    },
    ...NAMES_OPTION,
    "callback-url": {
      value: "URL",
      multiple: true,
      help: "your callback URL, as a whole (payments.expect.callbackUrl)",
    },
    secret: {
      value: "SECRET",
      multiple: true,
      help: "webhook secret, for connected-account webhooks; if it is left out, CONNECT_WEBHOOK_SECRET is used",
    },
    header: {
      value: "VALUE",
      help: "value of X-Connect-Signature, or of the header that your service calls so",
    },
  },
  notes: [
    "It verifies exactly as a receiver does. If that fails, it looks for the cause, such as a re-serialised body, another key, white space in the secret, URL-safe base64, or the header of another body (name further bodies after the first). BODY may be - for the standard input.",
    "For a payment callback it shows the canonical string. If that string can be read as different events, it says in which fields they differ (docs/concepts/security.md). It never prints a secret. Other users of this machine can see a secret on the command line, but not in CONNECT_WEBHOOK_SECRET.",
  ],
  examples: [
    "payhooks verify --key pub.pem body.json",
    'payhooks verify --secret "$SECRET" --header "sha256=9f86…" body.json',
    "pbpaste | payhooks verify --key pub.pem -",
  ],
  arguments: { least: 1, most: 20 },
  async run(args, terminal) {
    const explanation = await explain(args);
    terminal.json(explanation);
    print(explanation, terminal);
    return explanation.ok ? EXIT.ok : EXIT.failure;
  },
};

async function explain(args: ParsedArguments): Promise<Explanation> {
  const [path = "-", ...otherPaths] = args.positionals;
  const isWebhook = args.flag("secret") || args.flag("header");
  if (isWebhook && args.flag("key")) {
    throw new UsageError(
      "--key is for payment callbacks, --secret and --header for webhooks: give one of them.",
    );
  }
  const isCallback = args.flag("key") || (!isWebhook && process.env.PAY_PUBLIC_KEY !== undefined);
  if (!isWebhook && !isCallback) {
    throw new UsageError(
      "There is no key to verify with.",
      "Give --key FILE for a payment callback, or --secret SECRET --header VALUE for a webhook.",
    );
  }
  const body = await readBytes(path);
  const otherBodies = await Promise.all(
    otherPaths.map(async (name) => ({ name, bytes: await readBytes(name) })),
  );
  if (isCallback) {
    const files = await Promise.all(args.texts("key").map(readText));
    const pems = files.length > 0 ? files : [process.env.PAY_PUBLIC_KEY ?? ""];
    const settings = {
      names: (await readNames(args)) ?? serviceNames(),
      pinnedUrls: args.texts("callback-url"),
    };
    return explainCallback(body, pems, settings, otherBodies);
  }
  const secrets = args.texts("secret");
  const fromEnvironment = process.env.CONNECT_WEBHOOK_SECRET;
  if (secrets.length === 0 && fromEnvironment === undefined) {
    throw new UsageError("--secret is missing, and CONNECT_WEBHOOK_SECRET is not set.");
  }
  return explainWebhook(
    body,
    args.text("header"),
    secrets.length > 0 ? secrets : [fromEnvironment ?? ""],
    otherBodies,
  );
}

function print(explanation: Explanation, { line, paint }: Terminal): void {
  const { ok, code, summary, canonicalString, keyId, causes, notes } = explanation;
  if (ok) {
    line(`${paint("green", "Authentic.")} ${escapeForTerminal(summary)}`);
    line(`key ${keyId}`);
  } else {
    line(paint("red", code ?? ""));
    line(escapeForTerminal(summary, 500));
  }
  for (const { what, fix, certain } of causes) {
    line(`\n${paint("bold", certain ? "Cause:" : "Perhaps:")} ${escapeForTerminal(what, 1_000)}`);
    line(`  ${escapeForTerminal(fix, 1_000)}`);
  }
  if (canonicalString !== null)
    line(`\n${paint("bold", "Canonical string:")}\n${escapeForTerminal(canonicalString, 10_000)}`);
  for (const note of notes) line(`\nNote: ${escapeForTerminal(note, 1_000)}`);
}
