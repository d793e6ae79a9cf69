/** Results as Markdown: the tables that a run prints, and the two pages of the documentation. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { BY_HAND_CHART, byHandChart, byHandDetails, byHandSection } from "./by-hand/report.ts";
import { type ByHandResults, readByHand } from "./by-hand/results.ts";
import { costChart } from "./cost-chart.ts";
import type { FrameworkName, Scheme } from "./protocol.ts";
import { moreSections } from "./report-more.ts";
import {
  type GoalFigures,
  type GroupFigures,
  type PartFigures,
  type ProfileFigures,
  type Results,
  readResults,
  VERSIONS,
} from "./results.ts";
import { readSearch, type SearchResults, searchSection } from "./search-results.ts";
import { readSources, type SourcesResults, sourcesSection } from "./sources-results.ts";
import { figureOf, intervalOf, MODES, table } from "./table.ts";

const FRAMEWORKS: Readonly<Record<FrameworkName, string>> = {
  express: "Express 5",
  fastify: "Fastify 5",
  hono: "Hono on Node",
  next: "Next.js",
  fetch: "node:http through fetch",
  node: "node:http",
};
const SCHEMES: Readonly<Record<Scheme, string>> = { rsa: "RSA, 778 bytes", hmac: "HMAC, 419 bytes" };
export function goalTable(goals: readonly GoalFigures[]): string {
  const beside = (found: GoalFigures["least"]): string =>
    found === null ? "" : `${figureOf(found.median)} (${intervalOf(found)})`;
  const rows = goals.map(({ what, goal, figure, acceptingAlone, least, verdict }) => [
    what,
    goal,
    figure.rounds < 2 ? figure.median.toFixed(1) : figureOf(figure.median),
    intervalOf(figure),
    verdict === "met" ? "met" : `**${verdict}**`,
    beside(acceptingAlone),
    beside(least),
  ]);
  return table(["", "goal", "figure", "95 % interval", "verdict", "accepting only", "the least"], rows);
}

export function groupTitle({ framework, scheme }: Pick<GroupFigures, "framework" | "scheme">): string {
  return `${FRAMEWORKS[framework]}, ${SCHEMES[scheme]}`;
}

export function groupTable(group: GroupFigures): string {
  const rows = group.modes.map(({ mode, cpuUs, perSecond, ratio }) => [
    MODES[mode],
    figureOf(cpuUs.median),
    figureOf(perSecond.median),
    mode === group.reference ? "1" : `${figureOf(ratio.median)} (${intervalOf(ratio)})`,
  ]);
  const reference = `${MODES[group.reference]} ÷ it`;
  return table([groupTitle(group), "µs per request", "requests per second", reference], rows);
}

const PAGE = "performance.md";
/** The details lie beside the bench. As the page, it is named from the documentation's folder. */
const DETAILS = "../test/bench/results.md";
const DOCS = fileURLToPath(new URL("../../docs", import.meta.url));
const CHARTS = `${DOCS}/performance`;
const README = fileURLToPath(new URL("../../README.md", import.meta.url));
const FIGURES = /^\| handlers that do nothing +\| process,(?:.+\n)+/m;

/** The README with the first page's first table in the place of the one that it has. */
export function withFigures(readme: string, page: string): string {
  const [figures] = FIGURES.exec(page) ?? [];
  return figures === undefined ? readme : readme.replace(FIGURES, () => figures);
}

/** Writes the pages and their charts from the files of results, and the table of the README. */
export function writeReport(): void {
  const byHand = readByHand();
  const all = allResults();
  const written = pages(byHand, all);
  for (const [name, text] of written) writeFileSync(`${DOCS}/${name}`, text);
  writeFileSync(README, withFigures(readFileSync(README, "utf8"), written.get(PAGE) ?? ""));
  mkdirSync(CHARTS, { recursive: true });
  for (const [name, image] of charts(byHand, all)) writeFileSync(`${CHARTS}/${name}`, image);
}

/** Every chart of the pages, by the name of its file. */
export function charts(byHand: ByHandResults | null, all: readonly Results[]): ReadonlyMap<string, string> {
  const first = byHand === null ? [] : [[BY_HAND_CHART, byHandChart(byHand)] as const];
  return new Map([...first, ...all.map((results) => [chartName(results), costChart(results)] as const)]);
}

export function allResults(): readonly Results[] {
  return VERSIONS.map(readResults).filter((results) => results !== null);
}

const majorOf = ({ node }: Pick<Results, "node">): number => Number(node.split(".")[0]);
const chartName = (results: Pick<Results, "node">): string => `node-${majorOf(results)}.svg`;

/** The pages of these results, by the names of their files. A comparison that is null was never run. */
export function pages(
  byHand: ByHandResults | null,
  all: readonly Results[],
  search: SearchResults | null = readSearch(),
  sources: SourcesResults | null = readSources(),
): ReadonlyMap<string, string> {
  const compared = byHand === null ? [] : [byHandSection(byHand)];
  const details = byHand === null ? [] : [byHandDetails(byHand)];
  const inside = search === null ? [] : [searchSection(search)];
  const senders = sources === null ? [] : [sourcesSection(sources)];
  const page = (...sections: readonly string[]): string => `${sections.join("\n\n")}\n`;
  return new Map([
    [PAGE, page(INTRODUCTION, ...compared, MEANING)],
    [
      DETAILS,
      page(
        DETAILS_INTRODUCTION,
        ...details,
        ...all.map(renderVersion),
        ...senders,
        ...inside,
        READING,
        REPEAT,
      ),
    ],
  ]);
}

function renderVersion(results: Results): string {
  const { node, cores, load, measuredOn, goals, groups, recordBytes, parts, profile } = results;
  const bytes = Object.entries(recordBytes).map(([inbox, value]) => [inbox, figureOf(value)]);
  return [
    `## Node ${majorOf(results)}`,
    `Node ${node}, ${cores} cores, ${measuredOn}, at a load of ${load.toFixed(1)}.`,
    goalTable(goals),
    `![Processor time per request on Node ${majorOf(results)}](../../docs/performance/${chartName(results)})`,
    ...groups.map(groupTable),
    table(["a finished record", "bytes"], bytes),
    ...(parts === undefined ? [] : [partTable(parts)]),
    ...(profile === undefined ? [] : [profileTable(profile)]),
    ...moreSections(results),
  ].join("\n\n");
}

const PARTS: Readonly<Record<PartFigures["part"], string>> = {
  signature: "the signature check alone",
  byHand: "by hand: and parse, and build what was signed",
  accepted: "ours: and judge, deduplicate, store in memory",
  handled: "ours: and lease, run a handler, write its end",
};

function partTable(parts: readonly PartFigures[]): string {
  const cellOf = (part: PartFigures["part"], scheme: Scheme): string => {
    const found = parts.find((one) => one.part === part && one.scheme === scheme);
    return found === undefined ? "" : figureOf(found.cpuUs);
  };
  const names = Object.keys(PARTS) as PartFigures["part"][];
  return table(
    ["one delivery in a loop, no HTTP", "RSA, µs", "HMAC, µs"],
    names.map((part) => [PARTS[part], cellOf(part, "rsa"), cellOf(part, "hmac")]),
  );
}

/** Files of ours with a row of their own. */
const PLACES = 14;

function profileTable(profile: readonly ProfileFigures[]): string {
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
  const isOurs = (place: string): boolean => place.endsWith(".ts") || place === "Payhooks";
  const most = (place: string): number => Math.max(...profile.map(({ cpuUs }) => cpuUs[place] ?? 0));
  const places = [...new Set(profile.flatMap(({ cpuUs }) => Object.keys(cpuUs)))].sort(
    (a, b) => most(b) - most(a),
  );
  const ours = places.filter(isOurs);
  const shown = new Set(ours.slice(0, PLACES));
  const row = (title: string, among: (place: string) => boolean): readonly string[] => [
    title,
    ...profile.map(({ cpuUs }) => figureOf(sum(places.filter(among).map((place) => cpuUs[place] ?? 0)))),
  ];
  return table(
    ["Fastify 5, HMAC: a request by place, µs", ...profile.map(({ mode }) => MODES[mode])],
    [
      ...places.filter((place) => !isOurs(place)).map((place) => row(place, (one) => one === place)),
      row("Payhooks", isOurs),
      ...[...shown].map((place) => row(`… \`${place}\``, (one) => one === place)),
      row(`… ${ours.length - shown.size} other files`, (place) => isOurs(place) && !shown.has(place)),
    ],
  );
}

const INTRODUCTION = `# Performance

What does an event cost, from its request until its handler has run and that is recorded? This page compares Payhooks with
code written by hand. [Performance in detail](${DETAILS}) has the goals, every framework, and how all this
was measured.`;

const MEANING = `## What it means for you

- A core has a million microseconds a second. Divide it by the figure of your inbox, and you have the most that one process can take
  while it does nothing else. What your handlers do comes on top.
- With an inbox in a database, handlers can run in as many processes as you like. So the server is the limit, and the column of the
  server says how far it goes.
- A record stays after its event has ended, for the window and one day. [Sizing](guides/redis.md#sizing) says what it takes in Redis.
- Measure it on your own machine: \`npm run bench -- --by-hand --quick\` takes less than two minutes.`;

const DETAILS_INTRODUCTION = `# Performance in detail

This page has what [performance](../../docs/${PAGE}) leaves out: the goals beside code written by hand, and what Payhooks costs on top
of a framework and the signature check. \`npm run bench\` measures it and writes both pages. [How to read it](#how-to-read-it)
explains the words in the tables.`;

const READING = `## How to read it

What is measured:

- Every delivery is another genuine event, signed beforehand: a payment callback of 778 bytes (RSA), or a webhook of 419 bytes
  (HMAC). 64 are in flight, each on a connection of its own.
- **µs per request** is the processor time of the server process. It includes the handlers and the writing of their results: a
  turn is over when all its events are finished and their records written.
- **Accepting only** leaves the handlers to another process (\`run: "elsewhere"\`).
- **Inline verification** is the check by hand. It runs its handler too, but it recognises no copy, keeps nothing, and tries
  nothing again.
- **The least** is the check by hand and the least that has to follow it so that an event has one reading, runs once within a
  limit of time, and is not forgotten while the process lives (\`test/bench/child/least.ts\`). It has no lease, no retry, no bound
  of memory and no other inbox. Nobody could use it, and no receiver can cost less.

How it is measured:

- In each table, every mode is compared with the one that has a 1. The two share a server process that has nothing else to do, on
  the packages as they are built. They take turns of 2,000 requests (500 on Next.js), and take turns in being first. A third mode
  in the process would change what the engine compiles and collects. In processes of their own, on the other hand, the same
  program differs by more than what is compared.
- A server and its receiver live through all rounds, as a merchant's do: the engine compiles what is hot, and the first 2,000
  deliveries of a new receiver cost several times as much. The first 6 rounds do not count.
- The sender never sleeps, since on one machine the server pays for waking it up. In runs with Redis it may sleep, since it has
  no core for itself.

What the figures say:

- Figures are medians over the rounds. Ratios are taken within a round, since a busy machine slows both sides. They are the
  other's processor time divided by ours: 1 is no difference, 0.5 means that ours takes twice as much. The 95 % interval is that
  of the sign test (order statistics), which assumes nothing about the distribution.
- A goal is met when the whole interval reaches it, missed when none of it does, and undecided otherwise.
- The load is that of the system in the last five minutes. The bench makes about 2 of it. The rest comes from other programs,
  which widen the intervals and make every request dearer.
- "One delivery in a loop" is the same work without a server. Each row contains the work of the row before. The figure is the
  least of 12 rounds of 2,000. Between two requests of a server the caches are full of other things, and the same code takes
  longer.
- "A request by place" shows the same requests under the engine's sampling profiler, which makes each of them dearer. An inlined
  function counts where it was inlined, and a built-in one, such as \`JSON.parse\`, where it was called.
- Bytes are the growth of the heap or of the file over many records, divided by their number. In Redis they are the
  \`MEMORY USAGE\` of key and value.`;

const REPEAT = `## How to repeat it

${table(
  ["command", "measures"],
  [
    ["`npm run bench`", "the goals and all frameworks on this version of Node, in under 15 minutes"],
    [
      "`npm run bench -- --by-hand`",
      "ours compared with code written by hand, end to end, in under 15 minutes; with `--quick` too, in under 2",
    ],
    ["`npm run bench -- --quick`", "the goals with wider intervals, in under 2 minutes; writes nothing"],
    ["`npm run bench -- --all`", "peers, latency, load and sizes too, and all of it on Node 24 as well"],
    ["`npm run bench -- --node 24`", "on that version alone; it is installed below node_modules first"],
    ["`npm run bench -- --abuse`", "memory and answer times under abuse; `--seconds 8` for each kind"],
    [
      "`npm run bench -- --redis`",
      "what Redis costs: bytes of a record, events per second against BullMQ's `add` alone",
    ],
    [
      "`npm run bench -- --sqlite`",
      "SQLite against memory; `--records 1000000` fills the file, `--folder` says on which disk",
    ],
    [
      "`npm run bench -- --sources`",
      "ready sources compared with their senders' own libraries and with the connect flow, in about 5 minutes",
    ],
  ],
)}`;
