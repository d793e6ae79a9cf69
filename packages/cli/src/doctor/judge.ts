import { isAccepted } from "../delivery/post.ts";
import { isGenuine, isRedirect, isServerError, type Result } from "./examine.ts";
import type { FaultName, Finding } from "./findings.ts";

/** What the judgement depends on, besides the answers. */
export interface Standard {
  readonly flow: "payments" | "connect";
  /** Half of the answers to genuine deliveries must take less time. */
  readonly slowMs: number;
}

const RAW_BODY =
  "Verify the bytes as they arrived: mount the callback routes above express.json() and similar parsers, or use Payhooks' adapter, which reads the raw body.";

/** All findings, the gravest first. */
export function judge(results: readonly Result[], standard: Standard): Finding[] {
  const first = results[0];
  if (first === undefined) return [];
  return (
    unusable(first) ?? [
      ...hanging(results),
      ...genuine(results),
      ...duplicates(results),
      ...forged(results, standard),
      ...broken(results),
      ...leniency(results),
      ...slowness(results, standard),
    ]
  );
}

function finding(
  fault: FaultName,
  results: readonly Result[],
  what: string,
  fix: string,
  severity: Finding["severity"] = "error",
): Finding[] {
  if (results.length === 0) return [];
  return [{ fault, severity, probes: results.map(({ probe }) => probe.name), what, fix }];
}

function unusable(first: Result): Finding[] | null {
  const { status, error, headers } = first.answer;
  if (status === null && error !== "timeout") {
    return finding(
      "unreachable",
      [first],
      `Nobody answers there: ${error}.`,
      "Is your server running, and is the port right?",
    );
  }
  if (status === 404) {
    return finding(
      "not-found",
      [first],
      "There is nothing at this address (404).",
      "Check the path: it must be the one at which you mounted the receiver.",
    );
  }
  if (isRedirect(status)) {
    const to = typeof headers.location === "string" ? ` to ${headers.location}` : "";
    const what = `It redirects${to} (${status}): the service does not follow it, and counts a failed delivery.`;
    return finding(
      "redirect",
      [first],
      what,
      "Register the address that answers without a redirect: check https, the host name and the trailing slash.",
    );
  }
  return null;
}

function hanging(results: readonly Result[]): Finding[] {
  const silent = results.filter(({ answer, probe }) => answer.status === null && probe.kind !== "large");
  const timedOut = silent.filter(({ answer }) => answer.error === "timeout");
  const broken = silent.filter(({ answer }) => answer.error !== "timeout");
  return [
    ...finding(
      "hanging",
      timedOut,
      "It takes the request and never answers.",
      "Usually a body parser has read the stream that the handler waits for, or an error is swallowed. Mount the receiver above body parsers, and answer on every path.",
    ),
    ...finding(
      "server-error",
      broken,
      `The connection ends without an answer: ${broken[0]?.answer.error}.`,
      "Look at your server's log: did it crash?",
    ),
  ];
}

/** Which of the genuine deliveries were accepted shows what the receiver does to the bytes. */
function genuine(results: readonly Result[]): Finding[] {
  const sent = results.filter((result) => isGenuine(result) && result.answer.status !== null);
  const consumed = sent.filter(({ answer }) => answer.body.includes("ERR_BODY_CONSUMED"));
  if (consumed.length > 0) {
    const what = "A body parser ran before the receiver: the raw bytes are gone (ERR_BODY_CONSUMED).";
    return finding(
      "body-parser",
      consumed,
      what,
      "Mount the callback routes above express.json() and similar parsers.",
    );
  }
  const redirected = sent.filter(({ answer }) => isRedirect(answer.status));
  const failed = sent.filter(({ answer }) => isServerError(answer));
  const refused = sent.filter(
    ({ answer }) => !isAccepted(answer) && !isServerError(answer) && !isRedirect(answer.status),
  );
  return [
    ...finding(
      "redirect",
      redirected,
      "It redirects: the service does not follow it, and counts a failed delivery.",
      "Answer at the registered address itself.",
    ),
    ...finding(
      "server-error",
      failed,
      `It answers genuine deliveries with ${statusesOf(failed)}.`,
      "Look at your server's log. The service sends such a delivery again and again.",
    ),
    ...refusal(sent, refused),
  ];
}

function refusal(sent: readonly Result[], refused: readonly Result[]): Finding[] {
  if (refused.length === 0) return [];
  if (sent.every((result) => refused.includes(result))) {
    const what = `It refuses every genuine delivery (${statusesOf(refused)}).`;
    return finding(
      "refuses-genuine",
      refused,
      what,
      "Does it verify the raw body, with the key or secret that this command signs with? payhooks verify explains a single delivery.",
    );
  }
  const kinds = new Set(refused.map(({ probe }) => probe.kind));
  const what =
    kinds.size === 1 && kinds.has("number")
      ? `It refuses genuine deliveries whose numbers change when they are parsed and serialised again (${statusesOf(refused)}): 10.0 becomes 10.`
      : `It accepts some genuine deliveries and refuses others that differ only in how the JSON is written (${statusesOf(refused)}): it verifies what it parsed and serialised again.`;
  return finding("raw-body", refused, what, RAW_BODY);
}

function duplicates(results: readonly Result[]): Finding[] {
  const isFirstTaken = results.some(({ probe, answer }) => probe.kind === "baseline" && isAccepted(answer));
  if (!isFirstTaken) return [];
  const failed = results.filter(
    ({ probe, answer }) => probe.kind === "duplicate" && answer.status !== null && !isAccepted(answer),
  );
  return finding(
    "fails-on-duplicates",
    failed,
    `It has accepted a delivery, and answers ${statusesOf(failed)} when the same delivery comes again.`,
    "Delivery is at least once: answer 2xx for what you know already, or the service sends it again and again. A common cause is a unique index that throws.",
  );
}

function forged(results: readonly Result[], { flow }: Standard): Finding[] {
  const sent = results.filter(({ probe, answer }) => probe.kind === "forged" && answer.status !== null);
  const taken = sent.filter(({ answer }) => isAccepted(answer));
  const failed = sent.filter(
    ({ answer }) => isServerError(answer) && !answer.body.includes("ERR_BODY_CONSUMED"),
  );
  const wanted = flow === "payments" ? [401] : [400, 401];
  const other = sent.filter(
    ({ answer }) => !isAccepted(answer) && !isServerError(answer) && !wanted.includes(answer.status ?? 0),
  );
  return [
    ...finding(
      "accepts-forged",
      taken,
      `It answers ${statusesOf(taken)} to deliveries that are not authentic.`,
      "Verify the signature before anything else, and answer " +
        (flow === "payments" ? "401" : "400") +
        " if it does not match: anybody who knows the address can send such deliveries.",
    ),
    ...finding(
      "server-error",
      failed,
      `It answers ${statusesOf(failed)} to deliveries that are not authentic.`,
      `Answer ${wanted[0]}: a server error hides the attack, and may be a bug that attackers can use.`,
    ),
    ...finding(
      "wrong-status",
      other,
      `It answers ${statusesOf(other)} to deliveries that are not authentic.`,
      `Answer ${wanted.join(" or ")} (specification, Receiver practices).`,
    ),
  ];
}

function broken(results: readonly Result[]): Finding[] {
  const notJson = results.filter(({ probe, answer }) => probe.kind === "not-json" && answer.status !== null);
  const taken = notJson.filter(({ answer }) => isAccepted(answer));
  const others = results.filter(({ probe }) =>
    ["not-json", "wrong-method", "stale", "large"].includes(probe.kind),
  );
  const failed = others.filter(
    ({ answer }) => isServerError(answer) && !answer.body.includes("ERR_BODY_CONSUMED"),
  );
  return [
    ...finding("wrong-status", taken, `It answers ${statusesOf(taken)} to what is not JSON.`, "Answer 400."),
    ...finding(
      "server-error",
      failed,
      `It answers ${statusesOf(failed)} to requests that it should refuse.`,
      "Answer 4xx: the mistake is in the request, not in the server.",
    ),
  ];
}

/** What the specification allows, and is risky all the same. */
function leniency(results: readonly Result[]): Finding[] {
  const of = (kind: string): Result[] =>
    results.filter(({ probe, answer }) => probe.kind === kind && isAccepted(answer));
  return [
    ...finding(
      "lenient",
      of("stale"),
      "It accepts a delivery that was signed 30 days ago.",
      "Refuse old deliveries, or keep the ids that you deduplicate by for ever. Otherwise a recorded delivery can be replayed.",
      "warning",
    ),
    ...finding(
      "lenient",
      of("large"),
      "It accepts a body of 1 MiB.",
      "Limit how much you read: deliveries are smaller than 64 KiB.",
      "warning",
    ),
    ...finding(
      "lenient",
      of("wrong-method"),
      "It answers GET with success.",
      "Deliveries are POST: answer 405 to everything else.",
      "warning",
    ),
  ];
}

function slowness(results: readonly Result[], { slowMs }: Standard): Finding[] {
  const taken = results.filter((result) => isGenuine(result) && isAccepted(result.answer));
  const sorted = taken.map(({ answer }) => answer.durationMs).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  if (median === undefined || median <= slowMs) return [];
  const slow = taken.filter(({ answer }) => answer.durationMs > slowMs);
  const what = `It answers slowly: half of the genuine deliveries took ${median} ms or more.`;
  return finding(
    "slow",
    slow,
    what,
    "Store the event, answer, and do the work afterwards (specification, Receiver practices).",
  );
}

function statusesOf(results: readonly Result[]): string {
  return [...new Set(results.map(({ answer }) => answer.status))].sort().join(", ");
}
