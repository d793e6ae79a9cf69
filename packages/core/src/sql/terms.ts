/** A value that is bound to a statement. */
export type BoundValue = string | number;

/** Terms of a condition, joined by AND, and their bound values. */
export class Terms {
  /** In the order of their marks in the text. Empty if the query binds them itself. */
  readonly values: BoundValue[] = [];
  readonly #terms: string[] = ["TRUE"];
  readonly #bind: (value: BoundValue) => string;

  /** `bind` binds a value, and returns its mark in the text. Default: `?`, and the value is added to {@link values}. */
  constructor(bind?: (value: BoundValue) => string) {
    this.#bind =
      bind ??
      ((value) => {
        this.values.push(value);
        return "?";
      });
  }

  /** Adds a term, unless a value is undefined. Each `?` stands for a value. */
  add(term: string, ...values: readonly (BoundValue | undefined)[]): void {
    const presentValues = values.filter((value) => value !== undefined);
    if (presentValues.length < values.length) return;
    const marks = presentValues.map(this.#bind);
    this.#terms.push(term.replace(/\?/g, () => marks.shift() ?? "?"));
  }

  toString(): string {
    return this.#terms.join(" AND ");
  }
}
