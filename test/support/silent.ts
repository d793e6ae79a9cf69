import type { Logger } from "@payhooks/core";

/** A logger for tests that look at something else. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
