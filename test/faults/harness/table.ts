/** One case of a run. */
export interface Row {
  readonly case: string;
  readonly acknowledged: number;
  readonly completed: number;
  readonly held: number;
  readonly lost: number;
  readonly doubles: number;
  /** Null where answers are not what it is about. */
  readonly worstAnswerMs: number | null;
  readonly note: string;
}

const HEADS = ["case", "acknowledged", "completed", "held", "lost", "doubles", "worst answer", ""] as const;

/** The rows as a table of text. */
export function formatTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.case,
    ...[row.acknowledged, row.completed, row.held, row.lost, row.doubles].map(String),
    row.worstAnswerMs === null ? "-" : `${Math.round(row.worstAnswerMs)} ms`,
    row.note,
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
