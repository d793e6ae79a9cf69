/** What the comparison has found, as Markdown: the tables that a run prints, and the section that opens the page. */
import { barChart } from "../bars.ts";
import { figureOf, intervalOf, table } from "../table.ts";
import type { ByHandResults, HandlerFigures } from "./results.ts";
import { BY_HAND, CONCURRENCY, NAMES, WAYS } from "./ways.ts";

const titleOf = ({ handlerMs }: Pick<HandlerFigures, "handlerMs">): string =>
  handlerMs === 0 ? "handlers that do nothing" : `handlers of ${handlerMs} ms`;

/** What each way costs, and what ours may cost of what is written by hand. */
export function handlerTables(figures: HandlerFigures): string {
  const costs = figures.ways.map(({ way, cpuUs, serverCpuUs, perSecond }) => [
    NAMES[way],
    figureOf(cpuUs.median),
    serverCpuUs === null ? "" : figureOf(serverCpuUs.median),
    figureOf(perSecond.median),
  ]);
  const goals = figures.goals.map(({ what, goal, figure, verdict }) => [
    what,
    goal,
    figureOf(figure.median),
    intervalOf(figure),
    verdict === "met" ? "met" : `**${verdict}**`,
  ]);
  const title = titleOf(figures);
  return [
    table([title, "process, µs per event", "server, µs per event", "events per second"], costs),
    table([`${title}: ours ÷ by hand`, "goal", "figure", "95 % interval", "verdict"], goals),
  ].join("\n\n");
}

export const BY_HAND_CHART = "by-hand.svg";

export function byHandChart({ node, handlers }: Pick<ByHandResults, "node" | "handlers">): string {
  const title = `Processor time per event on Node ${node}, microseconds: the process + Redis, each group on its own scale; whiskers: 95 % interval`;
  return barChart(
    title,
    handlers.map((figures) => ({
      title: titleOf(figures),
      bars: figures.ways.map(({ way, cpuUs, serverCpuUs }) => ({
        label: NAMES[way],
        isOurs: !BY_HAND.has(way),
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

export function byHandSection(results: ByHandResults): string {
  const { node, cores, load, measuredOn, handlers } = results;
  return [
    "## Compared with code written by hand",
    `This is the whole way of an event: from the request until its handler has run and that is recorded. Node ${node}, ${cores} cores,\n${measuredOn}, at a load of ${load.toFixed(1)}.`,
    `![Processor time per event, ours and by hand](performance/${BY_HAND_CHART})`,
    ...handlers.map(handlerTables),
    ...unmeasured(handlers),
    READING,
  ].join("\n\n");
}

const READING = `- "Verify, keep nothing" is Express with the signature check of \`node:crypto\` over the canonical string. It calls the handler and
  answers. It recognises no copy, tries nothing again, and does not limit how many handlers run at one time. What it has answered
  is lost with its process. \`test/bench/by-hand/check.ts\`
- "Verify, SET NX, BullMQ" has the same check. \`SET NX\` in Redis recognises copies, and BullMQ does the rest: \`add\` before the
  answer, and a worker in the same process. It loses an event if the process dies between the two. \`test/bench/by-hand/queue.ts\`
- "Verify, INSERT, graphile-worker" and "pg-boss" have the same check. An \`INSERT … ON CONFLICT DO NOTHING\`, which recognises
  copies, and the job are one transaction. A worker in the same process handles it. \`test/bench/by-hand/graphile.ts\`, \`boss.ts\`
- Ours is Express with a receiver and its inbox, with nothing else set. \`test/bench/by-hand/ours.ts\`
- At most ${CONCURRENCY} handlers run at one time, except where nothing is kept. 64 payment callbacks (RSA, 778 bytes) are in
  flight, sent by another process, which may sleep.
- Each way has a process of its own. Those with Redis or PostgreSQL also have a server of their own: Redis with an append-only
  file that is flushed every second, PostgreSQL as it is installed. In every round each way takes the same 2,000 events (800 with
  handlers of 50 ms), in an order that changes from round to round.
- "Process" is the processor time of the process, from the first delivery until 50 ms after the end of the last handler is
  recorded. "Server" is what Redis says of itself, or what the system says of the processes of PostgreSQL. Events per second
  count until the end of the last handler is recorded.`;
