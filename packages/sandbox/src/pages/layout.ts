import { type Html, PAGE_HEADERS, pageDocument } from "@payhooks/pages";
import type { Context } from "hono";

/** Answers with a whole page. */
export function page(
  c: Context,
  content: {
    readonly title: string;
    readonly body: Html;
    readonly bodyClass: string;
    readonly script?: string;
    /** The page that the browser opens next by itself, and after how many seconds. */
    readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
    readonly status?: 200 | 400 | 404;
  },
): Response | Promise<Response> {
  const { status = 200, ...parts } = content;
  const assets = "/sandbox/assets";
  const document = pageDocument({
    ...parts,
    icon: `${assets}/icon.svg`,
    style: `${assets}/${content.bodyClass}.css`,
  });
  return c.html(document, status, { ...PAGE_HEADERS });
}
