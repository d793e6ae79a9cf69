/** One proof of a run. Null where a number is not what it is about. */
export interface Row {
  readonly proof: string;
  readonly cases: number;
  readonly forged: number | null;
  readonly crashes: number | null;
  /** Wrong versions of what is tested that were found out, of so many. */
  readonly mutants: { readonly killed: number; readonly of: number } | null;
  readonly note: string;
}

const HEADS = ["proof", "cases tried", "forged", "crashes", "mutants killed", ""] as const;

/** The rows as a table of text, with their sums. */
export function formatTable(rows: readonly Row[]): string {
  const sum = (numbers: readonly (number | null)[]): number =>
    numbers.reduce((all: number, one) => all + (one ?? 0), 0);
  const total: Row = {
    proof: "all",
    cases: sum(rows.map(({ cases }) => cases)),
    forged: sum(rows.map(({ forged }) => forged)),
    crashes: sum(rows.map(({ crashes }) => crashes)),
    mutants: {
      killed: sum(rows.map(({ mutants }) => mutants?.killed ?? 0)),
      of: sum(rows.map(({ mutants }) => mutants?.of ?? 0)),
    },
    note: "",
  };
  const cells = [...rows, total].map(({ proof, cases, forged, crashes, mutants, note }) => [
    proof,
    cases.toLocaleString("en"),
    forged === null ? "-" : String(forged),
    crashes === null ? "-" : String(crashes),
    mutants === null ? "-" : `${mutants.killed} of ${mutants.of}`,
    note,
  ]);
  const widths = HEADS.map((head, at) =>
    Math.max(head.length, ...cells.map((line) => line[at]?.length ?? 0)),
  );
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) =>
        at === 0 || at === HEADS.length - 1 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return ["", line(HEADS), ...cells.map(line), ""].join("\n");
}
