/** The form that all tables of the report have in common. */
import type { Mode } from "./protocol.ts";
import type { Estimate } from "./statistics.ts";

export const MODES: Readonly<Record<Mode, string>> = {
  bare: "bare framework",
  inline: "inline verification, cached key",
  pem: "inline verification, PEM per call",
  least: "the least for one run per event",
  memory: "ours, memory",
  "memory-accept": "ours, memory, accepting only",
  sqlite: "ours, SQLite",
  "sqlite-accept": "ours, SQLite, accepting only",
  redis: "ours, Redis",
  "redis-accept": "ours, Redis, accepting only",
  source: "our source, memory",
  peer: "another library",
};

/** A table with columns of one width, as the formatter of this repository leaves it. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

export const figureOf = (value: number): string => (value >= 10 ? value.toFixed(0) : value.toFixed(2));
export const intervalOf = ({ low, high, rounds }: Estimate): string =>
  rounds < 2 ? "counted" : `${figureOf(low)} … ${figureOf(high)}`;
