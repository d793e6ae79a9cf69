import type { Case } from "./case.ts";

/** The result of a case at one adapter. */
export type Mark = "same" | "own" | "differs" | "unreachable";

const SIGNS: Readonly<Record<Mark, string>> = {
  same: "✓",
  own: "own",
  differs: "✗",
  unreachable: "–",
};

/** Cases × adapters. `own` marks what the framework answers by itself, `–` what cannot come about there. */
export class Table {
  readonly #cases: readonly Case[];
  readonly #columns = new Map<string, Map<string, Mark>>();

  constructor(cases: readonly Case[]) {
    this.#cases = cases;
  }

  mark(adapter: string, name: string, mark: Mark): void {
    const column = this.#columns.get(adapter) ?? new Map<string, Mark>();
    column.set(name, mark);
    this.#columns.set(adapter, column);
  }

  toString(): string {
    const adapters = [...this.#columns.keys()];
    const width = Math.max(...this.#cases.map(({ name }) => name.length));
    const line = (first: string, cells: readonly string[]): string =>
      [first.padEnd(width), ...cells.map((cell, n) => cell.padEnd(adapters[n]?.length ?? 0))]
        .join("  ")
        .trimEnd();
    const marks = (name: string): Mark[] =>
      adapters.map((one) => this.#columns.get(one)?.get(name) ?? "differs");
    const rows = this.#cases.map(({ name }) =>
      line(
        name,
        marks(name).map((mark) => SIGNS[mark]),
      ),
    );
    const totals = adapters.map((one) => {
      const all = this.#cases.map(({ name }) => this.#columns.get(one)?.get(name));
      return `${all.filter((mark) => mark === "same").length}/${all.length}`;
    });
    return [line("", adapters), ...rows, line("same answers, same effects", totals)].join("\n");
  }
}
