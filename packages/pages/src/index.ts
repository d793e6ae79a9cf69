/**
 * The parts that the pages of the sandbox and of the console share.
 *
 * @module
 */

export { ICON, LOGO, PAGE_HEADERS, type PageContent, pageDocument } from "./document.ts";
export { hostName, isAddress, isLoopbackHost } from "./hosts.ts";
export { type Html, html } from "./html.ts";
export { clockTime, colouredJson, pill, type Tone } from "./parts.ts";
export { eventStream, type OpenStream } from "./stream.ts";
export { BASE_CSS, PARTS_CSS } from "./styles.ts";
