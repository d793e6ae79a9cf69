import { html as template } from "hono/html";

/** Text that is HTML already and is not escaped again. Only {@link html} makes it. */
export type Html = Awaited<ReturnType<typeof template>>;

type Value = string | number | Html | readonly Html[] | null | undefined | false;

/**
 * A template whose values are escaped, in text and in quoted attributes, unless they are {@link Html}. Narrower than
 * Hono's own: a value that was parsed from somebody's JSON could pose there as HTML that is escaped already.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  // Without a promise among the values, there is none in the result.
  return template(strings, ...values) as Html;
}
