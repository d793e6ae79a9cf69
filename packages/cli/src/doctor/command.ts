import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { type Given, httpUrl } from "../command-line/given.ts";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { createSender } from "../delivery/post.ts";
import {
  needPrivateKey,
  needSecret,
  readCredentials,
  refuseMerchantId,
  SIGNING_OPTIONS,
} from "../delivery/signing.ts";
import { INBOX_OPTIONS, openInbox } from "../events/open-inbox.ts";
import { connectProbes } from "./connect-probes.ts";
import { examine, type Result } from "./examine.ts";
import type { Finding } from "./findings.ts";
import { judge } from "./judge.ts";
import { findLeftBehind, heldFindings, printLeftBehind } from "./left-behind.ts";
import { paymentProbes } from "./payment-probes.ts";
import { createProbeIds, type Probe } from "./probes.ts";

export const doctorCommand: Command = {
  name: "doctor",
  summary: "Examine a running endpoint: raw-body damage, forgeries taken, wrong status codes, slowness",
  usage: ["URL --payments --private-key FILE | --state FILE", "URL --connect --secret SECRET | --state FILE"],
  options: {
    payments: { help: "the endpoint receives payment callbacks; --private-key implies it" },
    connect: { help: "the endpoint receives connected-account webhooks; --secret implies it" },
    ...SIGNING_OPTIONS,
    "callback-url": { value: "URL", help: "the signed field callbackUrl", default: "the address examined" },
    ...INBOX_OPTIONS,
    redis: { value: "URL", help: "the Redis of redisInbox, to list what is held afterwards" },
    sqlite: { value: "FILE", help: "the file of sqliteInbox, to list what is held afterwards" },
    postgres: { value: "URL", help: "the PostgreSQL of postgresInbox, to list what is held afterwards" },
    timeout: {
      value: "MS",
      help: "how long an answer may take before it counts as hanging",
      default: "10000",
    },
    slow: {
      value: "MS",
      help: "time within which half of the genuine deliveries must be answered",
      default: "2000",
    },
  },
  notes: [
    "It sends genuine deliveries, copies of them, forged ones and broken ones, and says what the answers mean. A receiver that changes white space, letters or numbers before it verifies refuses some of the genuine ones. The exit code is 1 if something is wrong; warnings do not count.",
    "Use it on your own endpoint, in development: your handlers run for the genuine deliveries. These are PENDING and FAILED deposits of 1.00 whose references begin with doctor-, or declined accounts and settlements.",
    "A 2xx may also mean that a delivery is held; the answer does not show it. With --redis, --sqlite or --postgres, the command looks into your inbox and lists the entries that it has left there. Otherwise it prints the commands that list and discard them: the ids of all its deliveries begin alike.",
  ],
  examples: [
    "payhooks doctor http://127.0.0.1:3000/callbacks/pay --private-key private.pem",
    "payhooks doctor http://127.0.0.1:3000/callbacks/pay --payments --state sandbox.json --sqlite payhooks.db",
    "payhooks doctor http://127.0.0.1:3000/webhooks/connect --connect --state sandbox.json",
  ],
  arguments: { least: 1, most: 1 },
  async run(given, terminal) {
    const url = httpUrl("The address", given.positionals[0] ?? "");
    const { flow, probes, ids, isMerchantMadeUp } = await probesFor(given, url);
    const inbox = ["sqlite", "redis", "postgres"].some((name) => given.flag(name))
      ? await openInbox(given)
      : null;
    try {
      const sender = createSender(url, given.number("timeout", { min: 1 }) ?? 10_000);
      const slowMs = given.number("slow", { min: 1 }) ?? 2_000;
      terminal.line(`${probes.length} probes of ${url.href} (${flow})\n`);
      const { results, left } = await examine(probes, sender, (result) => printResult(result, terminal));
      sender.close();
      const leftBehind = await findLeftBehind(results, { ids, isMerchantMadeUp }, inbox);
      const findings = [...judge(results, { flow, slowMs }), ...heldFindings(leftBehind)];
      const isHealthy = findings.every(({ severity }) => severity === "warning");
      terminal.json({
        url: url.href,
        flow,
        healthy: isHealthy,
        findings,
        probes: results.map(({ probe, answer: { status, error, durationMs } }) => {
          return { name: probe.name, kind: probe.kind, id: probe.id, status, error, durationMs };
        }),
        notSent: left.map(({ name }) => name),
        leftBehind,
      });
      printFindings(findings, left, inbox !== null, terminal);
      printLeftBehind(leftBehind, given, terminal);
      return isHealthy ? EXIT.ok : EXIT.failure;
    } finally {
      await inbox?.close({ graceMs: 0 });
    }
  },
};

/** What to examine, and how. */
interface Plan {
  readonly flow: "payments" | "connect";
  readonly probes: readonly Probe[];
  /** The beginning of the ids of all probes. */
  readonly ids: string;
  readonly isMerchantMadeUp: boolean;
}

async function probesFor(given: Given, url: URL): Promise<Plan> {
  const said = ["payments", "connect"].filter((name) => given.flag(name));
  const meant = given.flag("private-key") ? "payments" : given.flag("secret") ? "connect" : undefined;
  const isBoth = said.length > 1 || (said.length === 0 && given.flag("private-key") && given.flag("secret"));
  const flow = said[0] ?? meant;
  if (isBoth || flow === undefined) {
    throw new UsageError(
      "Which flow does the endpoint receive?",
      "Give --payments or --connect, one at a time.",
    );
  }
  const credentials = await readCredentials(given);
  if (flow === "connect") {
    refuseMerchantId(given);
    const ids = createProbeIds("evt_");
    const probes = connectProbes(ids, needSecret(credentials));
    return { flow, probes, ids: ids.beginning, isMerchantMadeUp: false };
  }
  const ids = createProbeIds("");
  given.url("callback-url");
  const callbackUrl = given.text("callback-url") ?? url.href;
  const { merchantId } = credentials;
  const probes = paymentProbes({ callbackUrl, merchantId, ids }, needPrivateKey(credentials));
  return { flow: "payments", probes, ids: ids.beginning, isMerchantMadeUp: merchantId === null };
}

function printResult({ probe, answer }: Result, { line, paint }: Terminal): void {
  const outcome = answer.status === null ? `no answer: ${answer.error}` : String(answer.status);
  line(`  ${probe.name.padEnd(38)} ${outcome.padEnd(4)} ${paint("dim", `${answer.durationMs} ms`)}`);
}

function printFindings(
  findings: readonly Finding[],
  left: readonly Probe[],
  hasLookedInside: boolean,
  { line, paint }: Terminal,
): void {
  line();
  for (const { fault, severity, probes, what, fix } of findings) {
    const label = severity === "error" ? paint("red", `✗ ${fault}`) : paint("yellow", `! ${fault}`);
    line(`${label}  ${shown(what, 500)}\n    seen with: ${probes.join(", ")}\n    ${fix}`);
  }
  if (left.length > 0) line(`${left.length} further probes were not sent.`);
  if (findings.every(({ severity }) => severity === "warning"))
    line(paint("green", `Nothing is wrong with ${hasLookedInside ? "" : "the answers of "}this endpoint.`));
}
