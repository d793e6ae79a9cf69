/** The results of the comparison, as Markdown: the tables that a run prints, and its section on each of the two pages. */
import { barChart } from "../bar-chart.ts";
import { figureOf, intervalOf, table } from "../table.ts";
import type { ByHandResults, HandlerFigures } from "./results.ts";
import { CONCURRENCY, NAMES, OURS, WAYS } from "./ways.ts";

const titleOf = ({ handlerMs }: Pick<HandlerFigures, "handlerMs">): string =>
  handlerMs === 0 ? "handlers that do nothing" : `handlers of ${handlerMs} ms`;

const costTable = (figures: HandlerFigures): string =>
  table(
    [titleOf(figures), "process, µs per event", "server, µs per event", "events per second"],
    figures.ways.map(({ way, cpuUs, serverCpuUs, perSecond }) => [
      NAMES[way],
      figureOf(cpuUs.median),
      serverCpuUs === null ? "" : figureOf(serverCpuUs.median),
      figureOf(perSecond.median),
    ]),
  );

const goalTable = (figures: HandlerFigures): string =>
  table(
    [`${titleOf(figures)}: ours ÷ by hand`, "goal", "figure", "95 % interval", "verdict"],
    figures.goals.map(({ what, goal, figure, verdict }) => [
      what,
      goal,
      figureOf(figure.median),
      intervalOf(figure),
      verdict === "met" ? "met" : `**${verdict}**`,
    ]),
  );

/** The cost of each way, and the goals for ours. */
export const handlerTables = (figures: HandlerFigures): string =>
  `${costTable(figures)}\n\n${goalTable(figures)}`;

export const BY_HAND_CHART = "by-hand.svg";

export function byHandChart({ node, handlers }: Pick<ByHandResults, "node" | "handlers">): string {
  const title = `Processor time per event on Node ${node}, microseconds: the process + Redis, each group on its own scale; whiskers: 95 % interval`;
  return barChart(
    title,
    handlers.map((figures) => ({
      title: titleOf(figures),
      bars: figures.ways.map(({ way, cpuUs, serverCpuUs }) => ({
        label: NAMES[way],
        isOurs: OURS.some((ours) => ours === way),
        cpuUs,
        besideUs: serverCpuUs,
      })),
    })),
  );
}

/** Says which ways are described below, and were no part of the run. */
function unmeasured(handlers: readonly HandlerFigures[]): readonly string[] {
  const measured = new Set(handlers.flatMap(({ ways }) => ways.map(({ way }) => way)));
  const missing = WAYS.filter((way) => !measured.has(way)).map((way) => NAMES[way]);
  return missing.length === 0 ? [] : [`Not measured in this run: ${missing.join("; ")}.`];
}

/** The table for readers: the cost of each way, and what it does for that. */
export function byHandSection({ node, cores, load, measuredOn, handlers }: ByHandResults): string {
  return [
    "## Compared with code written by hand",
    `Node ${node}, ${cores} cores, ${measuredOn}, at a load of ${load.toFixed(1)}. _Process_ is the processor time of your Node.js process, and\n_server_ that of Redis, PostgreSQL or MariaDB.`,
    `![Processor time per event, ours and by hand](performance/${BY_HAND_CHART})`,
    ...handlers.map(costTable),
    ...unmeasured(handlers),
    COMPARED,
    verdicts(handlers),
  ].join("\n\n");
}

function verdicts(handlers: readonly HandlerFigures[]): string {
  const goals = handlers.flatMap((figures) => figures.goals);
  const met = goals.filter(({ verdict }) => verdict === "met");
  return `We have set goals for how ours compares with each of these ways: ${met.length} of ${goals.length} are met. [The\ndetails](../test/bench/results.md#compared-with-code-written-by-hand) show each goal with its figure.`;
}

/** The goals of the comparison, and how it was made. */
export const byHandDetails = ({ handlers }: Pick<ByHandResults, "handlers">): string =>
  ["## Compared with code written by hand", ...handlers.map(goalTable), READING].join("\n\n");

const COMPARED = `- **Verify, keep nothing** is Express with the signature check of \`node:crypto\` over the canonical string. It calls the handler and
  answers. It recognises no copy, tries nothing again, and does not limit how many handlers run at one time. What it has answered
  is lost with its process.
- **Verify, SET NX, BullMQ** has the same check. \`SET NX\` in Redis recognises copies, and BullMQ does the rest: \`add\` before the
  answer, and a worker in the same process. It loses an event if the process dies between the two.
- **Verify, INSERT, graphile-worker** and **pg-boss** have the same check. An \`INSERT … ON CONFLICT DO NOTHING\`, which recognises
  copies, and the job are one transaction. A worker in the same process handles it.
- **Verify, INSERT, a table as the queue** has the same check, on MariaDB. A worker in the same process takes the rows that nobody has
  locked, and holds their locks until their handlers have ended.
- **Ours** is Express with a receiver and its inbox, with nothing else set.

The programs are in \`test/bench/by-hand\`. At most ${CONCURRENCY} handlers run at one time, except where nothing is kept.`;

const READING = `- 64 payment callbacks (RSA, 778 bytes) are in flight, sent by another process, which may sleep.
- Each way has a process of its own. Those with a database also have a server of their own: Redis with an append-only
  file that is flushed every second, PostgreSQL and MariaDB as they are installed. In every round each way takes the same 2,000
  events (800 with handlers of 50 ms), in an order that changes from round to round.
- "Process" is the processor time of the process, from the first delivery until 50 ms after the end of the last handler is
  recorded. "Server" is what Redis says of itself, or what the system says of the processes of the others. Events per second
  count until the end of the last handler is recorded.`;
