import { appendFileSync } from "node:fs";
import { inject } from "vitest";
import type { Row } from "./table.ts";

/** `npm run test:security`: every proof at its full length. */
export const isLong: boolean = process.env.PAYHOOKS_SECURITY === "long";

/** How many cases are tried. */
export function lengthOf(short: number, long: number): number {
  return isLong ? long : short;
}

/** How long a test may take; no bound on what is measured, only on waiting for a machine that hangs. */
export const TIMEOUT_MS: number = isLong ? 6 * 3_600_000 : 300_000;

/** Adds a line to the table that is printed at the end. */
export function report(row: Pick<Row, "proof" | "cases"> & Partial<Row>): void {
  const whole: Row = { forged: null, crashes: null, mutants: null, note: "", ...row };
  appendFileSync(inject("securityTable"), `${JSON.stringify(whole)}\n`);
}
