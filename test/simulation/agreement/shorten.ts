/** Finds a small part of a history on which stores still differ. */
import type { Call, History } from "./history.ts";
import type { Difference } from "./play.ts";

export interface Shortened {
  readonly history: History;
  readonly difference: Difference;
}

type Try = (history: History) => Promise<Difference | null>;

/** Removes calls, then writes of calls, as long as a difference remains. Another part may be even smaller. */
export async function shorten(history: History, difference: Difference, play: Try): Promise<Shortened> {
  let best: Shortened = { history: upTo(history, difference), difference };
  const isAsGood = async (calls: readonly Call[]): Promise<boolean> => {
    const candidate = { ...history, calls };
    const found = await play(candidate);
    if (found === null) return false;
    best = { history: upTo(candidate, found), difference: found };
    return true;
  };
  for (
    let size = Math.ceil(best.history.calls.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let from = 0; from < best.history.calls.length; ) {
      const { calls } = best.history;
      if (!(await isAsGood(calls.toSpliced(from, size)))) from += size;
    }
  }
  for (let at = 0; at < best.history.calls.length; at++) {
    for (let item = 0; ; ) {
      const { calls } = best.history;
      const call = calls[at];
      if (call?.kind !== "swap" || call.items.length < 2 || item >= call.items.length) break;
      const smaller = calls.with(at, { ...call, items: call.items.toSpliced(item, 1) });
      if (!(await isAsGood(smaller))) item++;
    }
  }
  return best;
}

/** Removes the calls after the difference. They cannot have caused it. */
function upTo(history: History, { at }: Difference): History {
  return { ...history, calls: history.calls.slice(0, at + 1) };
}
