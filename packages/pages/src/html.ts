import { html as template } from "hono/html";

/** HTML that is not escaped again. Only {@link html} makes it. */
export type Html = Awaited<ReturnType<typeof template>>;

type Value = string | number | Html | readonly Html[] | null | undefined | false;

/**
 * A template that escapes its values, in text and in quoted attributes, unless they are {@link Html}. It accepts fewer
 * types than Hono's own template. There, an object that was parsed from a stranger's JSON could claim to be HTML that
 * is escaped already.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  // Hono returns a promise only if one of the values is a promise.
  return template(strings, ...values) as Html;
}
