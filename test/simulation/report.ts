import { CALL_FAULTS, CALL_FAULTS_OF, FAULT_POINTS, nameOf, SITES, SYSTEM_FAULTS } from "./faults.ts";
import type { Invariant } from "./invariants.ts";
import type { Hunt } from "./mutation.ts";
import type { Coverage } from "./world.ts";

/** How often each fault met each call. Faults that can happen anywhere are counted before and after the call. */
export function coverageTable(coverage: Coverage): string {
  const count = (name: string): number => coverage.get(name) ?? 0;
  const rows = [
    ...SYSTEM_FAULTS.map((what) => [
      what,
      ...SITES.map((site) => `${count(`${what} before ${site}`)} / ${count(`${what} after ${site}`)}`),
    ]),
    ...CALL_FAULTS.map((what) => [
      what,
      ...SITES.map((site) => (CALL_FAULTS_OF[site].includes(what) ? `${count(`${what} at ${site}`)}` : "")),
    ]),
  ];
  return table(["fault", ...SITES.map((site) => `\`${site}\``)], rows);
}

/** The place at which a fault happened least, and how often that was. */
export function leastCovered(coverage: Coverage): { readonly name: string; readonly count: number } {
  const counts = FAULT_POINTS.map((point) => ({
    name: nameOf(point),
    count: coverage.get(nameOf(point)) ?? 0,
  }));
  return counts.reduce((least, one) => (one.count < least.count ? one : least));
}

export function mutantTable(hunts: readonly Hunt[]): string {
  const rows = hunts.map(({ mutant, foundBy, histories }) => [
    mutant,
    foundBy === null ? "**not found**" : `\`${foundBy}\``,
    String(histories),
  ]);
  return table(["mistake", "found by", "histories"], rows);
}

export function invariantTable(invariants: readonly Invariant[]): string {
  return table(
    ["invariant", "says"],
    invariants.map(({ name, says }) => [`\`${name}\``, says]),
  );
}

/** A table of Markdown, its columns as wide as they have to be. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) =>
    Math.max(title.length, 3, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
