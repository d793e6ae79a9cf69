/** A case, and the form in which its answers are compared. */
import type { Answer } from "../e2e/wire.ts";
import { inTurn, JSON_TYPE, times } from "./sending.ts";

/** A server that has the merchant's application on it. */
export interface Target {
  readonly name: string;
  readonly port: number;
  /** The parsers of its own routes before Payhooks. Those that begin with `exact` leave the bytes as they came. */
  readonly traps: readonly string[];
  /**
   * True if its platform may freeze the process after an answer. Events run right after the response there, so no mount starts
   * the receiver.
   */
  readonly runsAfterResponse?: boolean;
  /** Cases that the framework decides, before any adapter. */
  readonly own?: Readonly<Record<string, OwnAnswer>>;
}

/** A framework's own answers to a case, and why they cannot be changed. */
export interface OwnAnswer extends Pick<Outcome, "answers"> {
  /** The effects at the receiver all the same. Nothing, unless given. */
  readonly effects?: readonly string[];
  readonly why: string;
}

/** A request, and the outcome that it must have. */
export interface Case {
  readonly name: string;
  /** Sends, and returns the answers in the order in which they were asked for. */
  send(target: Target): Promise<readonly Answer[]>;
  readonly answers: readonly string[] | ((target: Target) => readonly string[]);
  /** In any order. */
  readonly effects: readonly string[] | ((target: Target) => readonly string[]);
}

/** The outcome of a case. */
export interface Outcome {
  readonly answers: readonly string[];
  readonly effects: readonly string[];
}

/** The answer to a delivery that is accepted, as {@link shown} writes it. */
export const RECEIVED: string = `200 {"received":true} ${JSON_TYPE}`;

/** An answer as it is compared. Other headers (date, server, …) are the framework's own. */
export function shown({ status, headers, body }: Answer): string {
  const named = ["allow", "retry-after"].flatMap((name) =>
    headers.has(name) ? [`${name}: ${headers.get(name)}`] : [],
  );
  return [`${status}`, body, headers.get("content-type") ?? "", ...named]
    .filter((part) => part !== "")
    .join(" ");
}

/** The answer to a delivery that is refused, as {@link shown} writes it. */
export function refused(status: number, code: string): string {
  const more = status === 405 ? " allow: POST" : status === 503 ? " retry-after: 5" : "";
  return `${status} {"error":{"code":"${code}"}} ${JSON_TYPE}${more}`;
}

/** Requests that are each refused in the same way. */
export function refusedAs(name: string, status: number, code: string, all: readonly Uint8Array[]): Case {
  return {
    name,
    send: inTurn(all),
    answers: times(all.length, refused(status, code)),
    effects: times(all.length, `refused ${status} ${code}`),
  };
}
