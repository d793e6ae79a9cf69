/** Text that is HTML already and is not escaped again. Only {@link html} makes it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | Html | readonly Html[] | null | undefined | false;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A template whose values are escaped, in text and in quoted attributes, unless they are {@link Html}. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.reduce((text, part, index) => text + render(values[index - 1]) + part));
}

function render(value: Value): string {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map(render).join("");
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
}
