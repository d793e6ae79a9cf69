import { type Html, html } from "./html.ts";

/**
 * The page loads nothing from other sites and has no inline scripts or styles. So if a reference or a message ever got
 * into the page as HTML, it could run nothing.
 */
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

/** Header fields of every page. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** The content of a page. */
export interface PageContent {
  readonly title: string;
  readonly body: Html;
  readonly bodyClass: string;
  readonly icon: string;
  readonly style: string;
  readonly script?: string | undefined;
  /** The page that the browser opens next by itself, and after how many seconds. */
  readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
}

/** Builds a whole HTML document. */
export function pageDocument({ title, body, bodyClass, icon, style, script, refresh }: PageContent): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${style}">
${refresh && html`<meta http-equiv="refresh" content="${refresh.seconds};url=${refresh.url}">`}
${script && html`<script src="${script}" defer></script>`}
</head>
<body class="${bodyClass}">
${body}
</body>
</html>
`;
}

/** The logo, a hook. It is also the favicon. */
export const LOGO: Html = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" fill="#0b7a5c"/><path d="M20.5 6.5v12a5.75 5.75 0 0 1-11.5 0v-2.2m0 0-2.6 2.9M9 16.3l2.7 2.9" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/><circle cx="20.5" cy="6.8" r="2.4" fill="#fff"/></svg>`;

/** The favicon as a file. */
export const ICON: string = `<svg xmlns="http://www.w3.org/2000/svg" ${String(LOGO).slice("<svg ".length)}`;
