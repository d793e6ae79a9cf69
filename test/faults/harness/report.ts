import { appendFileSync } from "node:fs";
import { inject } from "vitest";
import type { Sender } from "./sender.ts";
import type { Verdict } from "./system.ts";
import type { Row } from "./table.ts";

/** `npm run test:faults`: every case at its full length. */
export const isLong: boolean = process.env.PAYHOOKS_FAULTS === "long";

/** The length of a case that is counted in kills: its short form, or what `--kills` says, or its long form. */
export function lengthOf(short: number, long: number): number {
  if (!isLong) return short;
  const asked = Number(process.env.PAYHOOKS_FAULTS_KILLS);
  return Number.isInteger(asked) && asked > 0 ? Math.min(asked, long) : long;
}

/** Adds a line to the table that is printed at the end. */
export function report(name: string, verdict: Verdict, sender: Sender | null = null, note = ""): void {
  const row: Row = {
    case: name,
    acknowledged: verdict.acknowledged,
    completed: verdict.completed,
    held: verdict.held,
    lost: verdict.lost.length,
    doubles: verdict.doubles.length,
    worstAnswerMs: sender?.worstAnswerMs ?? null,
    note,
  };
  appendFileSync(inject("faultsTable"), `${JSON.stringify(row)}\n`);
}
