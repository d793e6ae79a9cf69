import type { Clock } from "../../clock.ts";
import { type Job, jobId } from "../inbox.ts";
import type { Disposition, Queue } from "../store.ts";

interface Entry {
  readonly id: string;
  readonly job: Job;
  readonly dueAt: number;
}

type Process = (job: Job) => Promise<Disposition>;

/** A queue that also takes a job at once, for a store that queues what it accepts in one step. */
export interface MemoryQueue extends Queue {
  schedule(job: Job, delayMs: number): void;
}

/** Jobs in this process: due ones in order of arrival, later ones by time. Bounded by the store's unfinished events. */
export function memoryQueue({ clock }: { readonly clock: Clock }): MemoryQueue {
  /** What waits, by id; an entry elsewhere that is not this very one was replaced. */
  const waiting = new Map<string, Entry>();
  const due = new Set<Entry>();
  const later = new EarliestFirst();
  /** Ids that are being worked on, and whether they were added again meanwhile. */
  const active = new Map<string, boolean>();
  const consumers = new Set<() => void>();
  let cancelTimer: (() => void) | null = null;
  let timerAt = Number.POSITIVE_INFINITY;

  function schedule(job: Job, delayMs: number): void {
    const id = jobId(job);
    if (active.has(id)) {
      active.set(id, true);
      return;
    }
    const entry: Entry = { id, job, dueAt: delayMs <= 0 ? 0 : clock.now() + delayMs };
    const known = waiting.get(id);
    if (known !== undefined && known.dueAt <= entry.dueAt) return;
    if (known !== undefined) due.delete(known);
    waiting.set(id, entry);
    if (entry.dueAt === 0) {
      due.add(entry);
      wake();
    } else {
      later.push(entry);
      setTimer();
    }
  }

  function wake(): void {
    for (const pump of consumers) pump();
  }

  function moveDue(): void {
    const now = clock.now();
    for (let entry = later.peek(); entry !== undefined && entry.dueAt <= now; entry = later.peek()) {
      later.pop();
      if (waiting.get(entry.id) === entry) due.add(entry);
    }
  }

  function setTimer(): void {
    const next = later.peek()?.dueAt ?? Number.POSITIVE_INFINITY;
    if (consumers.size === 0 || next >= timerAt) return;
    cancelTimer?.();
    timerAt = next;
    cancelTimer = clock.after(next - clock.now(), () => {
      timerAt = Number.POSITIVE_INFINITY;
      cancelTimer = null;
      moveDue();
      setTimer();
      wake();
    });
  }

  function takeDue(): Job | null {
    moveDue();
    const [entry] = due;
    if (entry === undefined) return null;
    due.delete(entry);
    waiting.delete(entry.id);
    active.set(entry.id, false);
    return entry.job;
  }

  function settle(job: Job, disposition: Disposition): void {
    const id = jobId(job);
    const addedMeanwhile = active.get(id) ?? false;
    active.delete(id);
    if (addedMeanwhile) schedule(job, 0);
    else if (disposition !== "finished") schedule(job, disposition.againInMs);
  }

  return {
    schedule,
    ready: async () => {},
    async add(job, { delayMs }) {
      schedule(job, delayMs);
    },
    async hasten(job) {
      const id = jobId(job);
      if (waiting.has(id) || active.has(id)) schedule(job, 0);
    },
    async consume(process: Process, { concurrency }) {
      const running = new Set<Promise<void>>();
      let stopped = false;
      let scheduled = false;
      /** Off the path of the delivery that woke it, so that the answer is written first. */
      const pump = (): void => {
        if (scheduled || stopped) return;
        scheduled = true;
        setImmediate(() => {
          scheduled = false;
          while (!stopped && running.size < concurrency) {
            const job = takeDue();
            if (job === null) break;
            const run = process(job).then((disposition) => {
              running.delete(run);
              settle(job, disposition);
              pump();
            });
            running.add(run);
          }
        });
      };
      consumers.add(pump);
      setTimer();
      pump();
      return {
        async stop() {
          stopped = true;
          consumers.delete(pump);
          await Promise.all(running);
        },
      };
    },
    async take() {
      const job = takeDue();
      return job === null ? null : { job, settle: async (disposition) => settle(job, disposition) };
    },
    recover: async () => moveDue(),
    async hurry() {
      for (const entry of waiting.values()) due.add(entry);
      wake();
    },
    async pending() {
      moveDue();
      for (
        let entry = later.peek();
        entry !== undefined && waiting.get(entry.id) !== entry;
        entry = later.peek()
      ) {
        later.pop();
      }
      return { due: due.size, nextDueAt: later.peek()?.dueAt ?? null };
    },
    async close() {
      cancelTimer?.();
      consumers.clear();
    },
  };
}

/** A binary heap of entries, the earliest on top. */
class EarliestFirst {
  readonly #heap: Entry[] = [];

  peek(): Entry | undefined {
    return this.#heap[0];
  }

  push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#dueAt(above) <= entry.dueAt) break;
      this.#swap(at, above);
      at = above;
    }
  }

  pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2])
        if (this.#dueAt(below) < this.#dueAt(least)) least = below;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #dueAt(index: number): number {
    return this.#heap[index]?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    const [first, second] = [heap[a], heap[b]];
    if (first === undefined || second === undefined) return;
    heap[a] = second;
    heap[b] = first;
  }
}
