/** The results of `npm run bench -- --search`, and the section that shows them. */
import { readFound, writeFound } from "./results.ts";
import { table } from "./table.ts";

/** The times of one store. */
export interface SearchFigures {
  readonly name: string;
  readonly rows: readonly { readonly what: string; readonly medianMs: number; readonly mostMs: number }[];
}

export interface SearchResults {
  readonly node: string;
  /** The system's load in the last minute of the run. */
  readonly load: number;
  readonly measuredOn: string;
  readonly finished: number;
  readonly held: number;
  readonly rounds: number;
  readonly stores: readonly SearchFigures[];
}

const NAME = "search";
/** For each question, in milliseconds. */
const GOAL_MS = 100;

export const readSearch = (): SearchResults | null => readFound<SearchResults>(NAME);
export const writeSearch = (results: SearchResults): void => writeFound(NAME, results);

/** The section of the page. */
export function searchSection({
  node,
  load,
  measuredOn,
  finished,
  held,
  rounds,
  stores,
}: SearchResults): string {
  const questions = stores[0]?.rows.map(({ what }) => what) ?? [];
  const rows = questions.map((what) => [
    what,
    ...stores.flatMap((store) => {
      const row = store.rows.find((one) => one.what === what);
      return row === undefined ? ["", ""] : [row.medianMs.toFixed(1), row.mostMs.toFixed(1)];
    }),
  ]);
  const missed = stores.flatMap((store) => store.rows).filter(({ medianMs }) => medianMs >= GOAL_MS).length;
  const verdict = missed === 0 ? "met by every question" : `**missed** by ${missed}`;
  return [
    "## Looking inside",
    `Among ${finished.toLocaleString("en")} finished and ${held.toLocaleString("en")} held events, on Node ${node}, ${measuredOn}, at a load of ${load.toFixed(1)}.
The goal is ${GOAL_MS} ms for each question: ${verdict}. A page has 50 events. Each question was asked ${rounds} times; the first of them is
asked of a database that has just been filled.`,
    table(["", ...stores.flatMap(({ name }) => [`${name}, ms`, "at most"])], rows),
  ].join("\n\n");
}
