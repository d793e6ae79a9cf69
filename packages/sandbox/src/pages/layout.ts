import type { Context } from "hono";
import { type Html, html } from "./html.ts";

/** Nothing from elsewhere, nothing inline: a reference or message that slips through as HTML can run nothing. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** A whole page. */
export function page(
  c: Context,
  given: {
    readonly title: string;
    readonly body: Html;
    readonly bodyClass: string;
    readonly script?: string;
    /** Seconds and address of the next page. */
    readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
    readonly status?: 200 | 400 | 404 | 409;
  },
): Response {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${given.title}</title>
<link rel="icon" href="/sandbox/assets/icon.svg">
<link rel="stylesheet" href="/sandbox/assets/${given.bodyClass}.css">
${given.refresh && html`<meta http-equiv="refresh" content="${given.refresh.seconds};url=${given.refresh.url}">`}
${given.script && html`<script src="${given.script}" defer></script>`}
</head>
<body class="${given.bodyClass}">
${given.body}
</body>
</html>
`;
  return c.html(document.text, given.status ?? 200, HEADERS);
}

/** The hook of the name, also the favicon. */
export const MARK: Html = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" fill="#0b7a5c"/><path d="M20.5 6.5v12a5.75 5.75 0 0 1-11.5 0v-2.2m0 0-2.6 2.9M9 16.3l2.7 2.9" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/><circle cx="20.5" cy="6.8" r="2.4" fill="#fff"/></svg>`;

export const ICON: string = `<svg xmlns="http://www.w3.org/2000/svg" ${MARK.text.slice("<svg ".length)}`;
