import type { Outcome, Step } from "./service.ts";

/** A step of the scenario, and what became of it. */
export interface Result {
  readonly step: Step;
  readonly actual: Outcome;
}

const color = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (code: number, text: string): string => (color ? `\u001b[${code}m${text}\u001b[0m` : text);

const WHAT_WIDTH = 52;

/** Prints the address of the receiver, the address of the sandbox, and how to send something by hand. */
export function printFrame(base: string, sandbox: string, curl: string | null): void {
  console.log(`${paint(1, "Payhooks")} receives on`);
  console.log(`  ${base}/callbacks/pay       payment callbacks (RSA signature in the body)`);
  console.log(`  ${base}/webhooks/connect    connected-account webhooks (HMAC header)`);
  console.log(`The sandbox of the service: ${sandbox}\n  ${sandbox}/       dashboard`);
  console.log(`The console of the person on duty:\n  ${base}/console`);
  if (curl !== null) console.log(`\nSend one yourself:\n  ${curl}`);
  console.log(`\n${"what arrives".padEnd(WHAT_WIDTH)} answer  then`);
}

/** One delivery: what came in, what was answered, what happened then. */
export function printLine({ step, actual }: Result): void {
  const answer = paint(actual.status < 300 ? 32 : 33, String(actual.status));
  const wrong = isExpected({ step, actual }) ? "" : paint(31, `   expected ${describe(step.expected)}`);
  console.log(`${step.what.padEnd(WHAT_WIDTH)} ${answer}     ${whatHappened(actual)}${wrong}`);
}

/** The table at the end. True when every outcome is the expected one. */
export function printSummary(results: readonly Result[], held: readonly string[]): boolean {
  const count = (predicate: (outcome: Outcome) => boolean): number =>
    results.filter(({ actual }) => predicate(actual)).length;
  const rows: [string, number][] = [
    ["deliveries", results.length],
    ["acknowledged (200)", count(({ status }) => status === 200)],
    ["refused", count(({ status }) => status >= 400)],
    ["handler runs", results.reduce((sum, { actual }) => sum + actual.ran.length, 0)],
    ["held for a person", held.length],
    ["as expected", results.filter(isExpected).length],
  ];
  console.log(`\n${paint(1, "Summary")}`);
  for (const [name, value] of rows) console.log(`  ${name.padEnd(20)} ${String(value).padStart(3)}`);
  console.log(`\n${paint(1, "Held")} (receiver.events: list, replay, discard)`);
  for (const line of held) console.log(`  ${line}`);
  return results.every(isExpected);
}

function isExpected({ step, actual }: Result): boolean {
  return describe(step.expected) === describe(actual);
}

function describe({ status, ran, held, known }: Outcome): string {
  return [String(status), ...ran, held === undefined ? "" : `held: ${held}`, known ?? ""]
    .filter(Boolean)
    .join(" ");
}

function whatHappened({ status, ran, held, known }: Outcome): string {
  if (ran.length > 0) return `ran ${ran.join(", ")}`;
  if (held !== undefined) return paint(33, `held: ${held}`);
  return paint(2, status < 300 ? `${known ?? "accepted"}, nothing ran` : "refused, nothing ran");
}
