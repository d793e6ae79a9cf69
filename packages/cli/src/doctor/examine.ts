import type { Answer, Sender } from "../delivery/post.ts";
import { GENUINE, type Probe } from "./probes.ts";

/** A probe with the answer that it got. */
export interface Result {
  readonly probe: Probe;
  readonly answer: Answer;
}

/** The result of an examination. */
export interface Examination {
  readonly results: readonly Result[];
  /** The probes that were not sent, because the endpoint cannot be examined any further. */
  readonly left: readonly Probe[];
}

/** After so many probes without an answer, the examination ends: waiting for the rest would take too long. */
const MOST_UNANSWERED = 2;

/** Sends the probes one after the other. */
export async function examine(
  probes: readonly Probe[],
  sender: Sender,
  tell: (result: Result) => void,
): Promise<Examination> {
  const results: Result[] = [];
  let unanswered = 0;
  for (const [index, probe] of probes.entries()) {
    const answer = await sender.send(probe.outgoing);
    const result = { probe, answer };
    results.push(result);
    tell(result);
    if (answer.status === null && probe.kind !== "large") unanswered++;
    const isFirst = index === 0;
    if (unanswered === MOST_UNANSWERED || (isFirst && isHopeless(answer))) {
      return { results, left: probes.slice(index + 1) };
    }
  }
  return { results, left: [] };
}

/** True if further probes would show nothing, because nobody answers or the address is wrong. */
function isHopeless({ status, error }: Answer): boolean {
  if (status === null) return error !== "timeout";
  return status === 404 || isRedirect(status);
}

export const isRedirect = (status: number | null): boolean =>
  status !== null && status >= 300 && status < 400;
export const isServerError = ({ status }: Answer): boolean => status !== null && status >= 500;
export const isGenuine = ({ probe }: Result): boolean => GENUINE.has(probe.kind);
