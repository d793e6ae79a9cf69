import type { Logger } from "@payhooks/core";

/** The command line reports errors itself, so the inboxes that it opens log nothing. */
export const silentLogger: Logger = { info: () => {}, warn: () => {}, error: () => {} };
