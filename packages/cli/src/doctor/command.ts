import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { type Given, httpUrl } from "../command-line/given.ts";
import { shown, type Terminal } from "../command-line/terminal.ts";
import { createSender } from "../delivery/post.ts";
import { needPrivateKey, needSecret, readSigningKeys, SIGNING_OPTIONS } from "../delivery/signing.ts";
import { connectProbes } from "./connect-probes.ts";
import { examine, type Result } from "./examine.ts";
import type { Finding } from "./findings.ts";
import { judge } from "./judge.ts";
import { paymentProbes } from "./payment-probes.ts";
import type { Probe } from "./probes.ts";

export const doctorCommand: Command = {
  name: "doctor",
  summary: "Examine a running endpoint: raw-body damage, forgeries taken, wrong status codes, slowness",
  usage: ["URL --payments --private-key FILE | --state FILE", "URL --connect --secret SECRET | --state FILE"],
  options: {
    payments: { help: "the endpoint receives payment callbacks; said already by --private-key" },
    connect: { help: "the endpoint receives connected-account webhooks; said already by --secret" },
    ...SIGNING_OPTIONS,
    timeout: { value: "MS", help: "an answer that takes longer counts as hanging", default: "10000" },
    slow: { value: "MS", help: "half of the genuine deliveries must be answered sooner", default: "2000" },
  },
  notes: [
    "Posts genuine deliveries that are sensitive to white space, letters and numbers, copies of them, forged ones and broken ones, and says what the answers mean. Exit code 1 when something is wrong; warnings do not count.",
    "It is for an endpoint of yours, in development: genuine deliveries are signed and will be handled. They are PENDING and FAILED deposits of 1.00 whose references begin with doctor-, and declined accounts and settlements.",
  ],
  examples: [
    "payhooks doctor http://127.0.0.1:3000/callbacks/pay --private-key private.pem",
    "payhooks doctor http://127.0.0.1:3000/webhooks/connect --connect --state sandbox.json",
  ],
  arguments: { least: 1, most: 1 },
  async run(given, terminal) {
    const url = httpUrl("The address", given.positionals[0] ?? "");
    const { flow, probes } = await probesFor(given, url);
    const sender = createSender(url, given.number("timeout", { min: 1 }) ?? 10_000);
    const slowMs = given.number("slow", { min: 1 }) ?? 2_000;
    terminal.line(`${probes.length} probes of ${url.href} (${flow})\n`);
    const { results, left } = await examine(probes, sender, (result) => printResult(result, terminal));
    sender.close();
    const findings = judge(results, { flow, slowMs });
    const isHealthy = findings.every(({ severity }) => severity === "warning");
    terminal.json({
      url: url.href,
      flow,
      healthy: isHealthy,
      findings,
      probes: results.map(({ probe, answer: { status, error, durationMs } }) => {
        return { name: probe.name, kind: probe.kind, status, error, durationMs };
      }),
      notSent: left.map(({ name }) => name),
    });
    printFindings(findings, left, terminal);
    return isHealthy ? EXIT.ok : EXIT.failure;
  },
};

async function probesFor(given: Given, url: URL): Promise<{ flow: "payments" | "connect"; probes: Probe[] }> {
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
  const keys = await readSigningKeys(given);
  return flow === "payments"
    ? { flow, probes: paymentProbes(url.href, needPrivateKey(keys)) }
    : { flow: "connect", probes: connectProbes(needSecret(keys)) };
}

function printResult({ probe, answer }: Result, { line, paint }: Terminal): void {
  const outcome = answer.status === null ? `no answer: ${answer.error}` : String(answer.status);
  line(`  ${probe.name.padEnd(38)} ${outcome.padEnd(4)} ${paint("dim", `${answer.durationMs} ms`)}`);
}

function printFindings(
  findings: readonly Finding[],
  left: readonly Probe[],
  { line, paint }: Terminal,
): void {
  line();
  for (const { fault, severity, probes, what, fix } of findings) {
    const label = severity === "error" ? paint("red", `✗ ${fault}`) : paint("yellow", `! ${fault}`);
    line(`${label}  ${shown(what, 500)}\n    seen with: ${probes.join(", ")}\n    ${fix}`);
  }
  if (left.length > 0) line(`${left.length} further probes were not sent.`);
  if (findings.every(({ severity }) => severity === "warning"))
    line(paint("green", "Nothing is wrong with this endpoint."));
}
