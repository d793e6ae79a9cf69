import { inboxErrorNotice } from "../../notices/notice.ts";
import type { Runner } from "../contract/inbox.ts";
import type { VersionedRecord } from "../contract/store.ts";
import { dueTimeOf } from "../record/schedule.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import type { RecordChange } from "../write/records.ts";

/** Records that a poll was given while this process still ran them. The poll has hidden them from other processes for a while. */
export class HiddenRecords {
  readonly #core: InboxCore;
  readonly #keys = new Set<string>();

  constructor(core: InboxCore) {
    this.#core = core;
  }

  add(key: string): void {
    this.#keys.add(key);
  }

  delete(key: string): void {
    this.#keys.delete(key);
  }

  /**
   * Shows a record again if it is hidden. A poll may have taken the record after the end of its run was written, and before this
   * process has the answer to that write.
   */
  async unhideIfHidden(key: string, runner: Runner): Promise<void> {
    while (this.#keys.delete(key)) await this.unhide(key, runner);
  }

  /** Writes a record again that a poll has hidden, so that the next process that polls gets it. */
  async unhide(key: string, runner: Runner, guess?: VersionedRecord): Promise<void> {
    if (this.#core.isAbandoned) return;
    const { records, hideMs } = this.#core;
    const change: RecordChange<void> = (record, now) => {
      const dueTime = record === null ? null : dueTimeOf(record);
      return {
        answer: undefined,
        record: dueTime === null ? null : record,
        shouldAnnounce: dueTime !== null && dueTime.at <= now,
      };
    };
    try {
      await records.change({ key, guess, change, deadlineMs: hideMs });
    } catch (error) {
      if (!this.#core.isAbandoned) runner.notify(inboxErrorNotice("release", error));
    }
  }
}
