import { readFileSync } from "node:fs";

/** A line of the log that the processes under test append to. */
export interface LogLine {
  readonly what:
    | "started"
    | "completed"
    | "notice"
    | "on-held"
    | "lag"
    | "killed"
    | "discards"
    | "replays"
    | "replayed";
  /** `payTxnId status`; of a bulk, the eventId; `-` where it is about no event. */
  readonly key: string;
  /** Of a handler: its effectId. Of a notice: its type. Of a kill: where. Of who discards: the eventId. Of a bulk: what became of the event, and at its end how many it has decided about. */
  readonly detail: string;
  /** Of a handler: its attempt. Of a notice: why. Of a lag: how many milliseconds it was long. Of the end of a bulk: how many it had decided about before. */
  readonly more: string;
  readonly pid: number;
  /** On the clock that all processes share. */
  readonly at: number;
}

/** A line as it is written with one call of write(2). */
export function logLine({ what, key, detail, more, pid, at }: LogLine): string {
  return `${[what, key, detail, more, pid, at].join("\t")}\n`;
}

/** Everything that was written whole. */
export function readLog(path: string): readonly LogLine[] {
  const lines = readFileSync(path, "utf8").split("\n");
  lines.pop();
  return lines.map((line) => {
    const [what = "", key = "", detail = "", more = "", pid = "", at = ""] = line.split("\t");
    return { what: what as LogLine["what"], key, detail, more, pid: Number(pid), at: Number(at) };
  });
}
