/** The results of `npm run bench -- --sources`, and the section that shows them. */
import type { PeerName } from "./protocol.ts";
import { readFound, writeFound } from "./results.ts";
import { type Estimate, verdictOf } from "./statistics.ts";
import { figureOf, intervalOf, table } from "./table.ts";

/** A ready source, beside its sender's own library and beside the connect flow. */
export interface SourceFigures {
  readonly peer: PeerName;
  /** Name and version. */
  readonly library: string;
  /** Processor time of the server process per request, microseconds. */
  readonly libraryUs: Estimate;
  readonly sourceUs: Estimate;
  readonly connectUs: Estimate;
  /** The library's processor time ÷ the source's. */
  readonly libraryRatio: Estimate;
  /** The connect flow's processor time ÷ the source's. */
  readonly connectRatio: Estimate;
}

export interface SourcesResults {
  readonly node: string;
  /** The system's load in the last minute of the run. */
  readonly load: number;
  readonly measuredOn: string;
  readonly sources: readonly SourceFigures[];
}

const NAME = "sources";
/** A source costs at most what the connect flow does. */
const GOAL = 1;

export const readSources = (): SourcesResults | null => readFound<SourcesResults>(NAME);
export const writeSources = (results: SourcesResults): void => writeFound(NAME, results);

export function sourcesTable({ sources }: Pick<SourcesResults, "sources">): string {
  const rows = sources.map(({ library, libraryUs, sourceUs, connectUs, libraryRatio, connectRatio }) => {
    const verdict = verdictOf(connectRatio, GOAL);
    return [
      library,
      figureOf(libraryUs.median),
      figureOf(sourceUs.median),
      figureOf(connectUs.median),
      `${figureOf(libraryRatio.median)} (${intervalOf(libraryRatio)})`,
      `${figureOf(connectRatio.median)} (${intervalOf(connectRatio)})`,
      verdict === "met" ? "met" : `**${verdict}**`,
    ];
  });
  const head = ["Express 5, HMAC, 419 bytes", "library, µs", "our source, µs", "connect, µs"];
  return table([...head, "library ÷ our source", "connect ÷ our source", `≥ ${GOAL}`], rows);
}

/** The section of the page. */
export function sourcesSection(results: SourcesResults): string {
  const { node, load, measuredOn } = results;
  return [
    "## Any sender",
    `Ready sources beside their senders' own libraries on Express, on Node ${node}, ${measuredOn}, at a load of ${load.toFixed(1)}. Each line
is a server process of its own with all three in it, which take turns. The library verifies, answers and calls its handler, and keeps
nothing. Our source does what the connect flow does, in memory: it has a record for each event, recognises copies, and tries again. The
goal is that a source costs no more than the connect flow.`,
    sourcesTable(results),
  ].join("\n\n");
}
