import type { NoticeBoard } from "../notices/notice-board.ts";
import type { FlowName } from "../protocol/events.ts";

/** This many names of a source are counted separately, and all others together. */
const MAX_COUNTED_NAMES = 1_000;
const OTHER_NAMES = "others";

/** Counts the events of sources that were acknowledged without a handler, by their names, and posts a notice about each. */
export class UnhandledNames {
  readonly #notices: NoticeBoard;
  readonly #counts = new Map<FlowName, Map<string, number>>();

  constructor(notices: NoticeBoard) {
    this.#notices = notices;
  }

  /** A sender may have any number of names, so only the first names are counted separately. */
  count(flow: FlowName, name: string): void {
    const counts = this.#counts.get(flow) ?? new Map<string, number>();
    this.#counts.set(flow, counts);
    const event = counts.has(name) || counts.size < MAX_COUNTED_NAMES ? name : OTHER_NAMES;
    const count = (counts.get(event) ?? 0) + 1;
    counts.set(event, count);
    this.#notices.post({ type: "unhandled", flow, event, count });
  }
}
