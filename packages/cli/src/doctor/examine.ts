import type { Answer, Sender } from "../delivery/post.ts";
import { GENUINE, type Probe } from "./probes.ts";

/** A probe with the answer that it got. */
export interface Result {
  readonly probe: Probe;
  readonly answer: Answer;
}

/** What a whole examination gave. */
export interface Examination {
  readonly results: readonly Result[];
  /** Probes that were not sent, since the endpoint cannot be examined any further. */
  readonly left: readonly Probe[];
}

/** Unanswered probes after which the rest is not waited for as well. */
const MOST_UNANSWERED = 2;

/** Sends one probe after the other. */
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

/** Nothing further can be learnt: nobody is there, or it is the wrong address. */
function isHopeless({ status, error }: Answer): boolean {
  if (status === null) return error !== "timeout";
  return status === 404 || isRedirect(status);
}

export const isRedirect = (status: number | null): boolean =>
  status !== null && status >= 300 && status < 400;
export const isServerError = ({ status }: Answer): boolean => status !== null && status >= 500;
export const isGenuine = ({ probe }: Result): boolean => GENUINE.has(probe.kind);
