import type { Clock } from "../../clock.ts";
import { InFlight } from "../in-flight.ts";
import { type Job, jobId } from "../inbox.ts";
import type { Disposition, Queue } from "../store.ts";

interface Entry {
  readonly id: string;
  readonly job: Job;
  /** 0: at once. */
  readonly dueAt: number;
  /** `gone`: replaced by an earlier one, or settled. */
  state: "due" | "later" | "active" | "gone";
  addedMeanwhile: boolean;
}

/** Jobs that begin in one turn of the event loop at most, so that deliveries do not wait long for quick handlers. */
const BEGUN_AT_ONCE = 256;

type Process = (job: Job) => Promise<Disposition>;

/** A queue that also takes a job at once, for a store that queues what it accepts in one step. */
export interface MemoryQueue extends Queue {
  schedule(job: Job, delayMs: number): void;
}

/** Jobs in this process: due ones in order of arrival, later ones by time. Bounded by the store's unfinished events. */
export function memoryQueue({ clock }: { readonly clock: Clock }): MemoryQueue {
  /** What waits or is worked on. */
  const known = new InFlight<string, Entry>();
  const due = new FirstInFirstOut();
  const later = new EarliestFirst();
  const consumers = new Set<() => void>();
  let cancelTimer: (() => void) | null = null;
  let timerAt = Number.POSITIVE_INFINITY;

  function schedule(job: Job, delayMs: number): void {
    const id = jobId(job);
    const before = known.get(id);
    if (before?.state === "active") {
      before.addedMeanwhile = true;
      return;
    }
    const dueAt = delayMs <= 0 ? 0 : clock.now() + delayMs;
    if (before !== undefined) {
      if (before.state === "due" || before.dueAt <= dueAt) return;
      before.state = "gone";
    }
    const entry: Entry = { id, job, dueAt, state: "later", addedMeanwhile: false };
    known.set(id, entry);
    if (dueAt === 0) {
      makeDue(entry);
      wake();
    } else {
      later.push(entry);
      setTimer();
    }
  }

  function makeDue(entry: Entry): void {
    entry.state = "due";
    due.push(entry);
  }

  function wake(): void {
    for (const pump of consumers) pump();
  }

  function moveDue(): void {
    if (later.peek() === undefined) return;
    const now = clock.now();
    for (let entry = later.peek(); entry !== undefined && entry.dueAt <= now; entry = later.peek()) {
      later.pop();
      if (entry.state === "later") makeDue(entry);
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

  function takeDue(): Entry | null {
    moveDue();
    const entry = due.shift();
    if (entry === undefined) return null;
    entry.state = "active";
    return entry;
  }

  function settle(entry: Entry, disposition: Disposition): void {
    entry.state = "gone";
    known.delete(entry.id);
    if (entry.addedMeanwhile) schedule(entry.job, 0);
    else if (disposition !== "finished") schedule(entry.job, disposition.againInMs);
  }

  return {
    schedule,
    ready: async () => {},
    async add(job, { delayMs }) {
      schedule(job, delayMs);
    },
    async hasten(job) {
      if (known.get(jobId(job)) !== undefined) schedule(job, 0);
    },
    async consume(process: Process, { concurrency }) {
      let running = 0;
      /** Jobs that may still begin before the event loop has had its turn. */
      let left = 0;
      let stopped = false;
      let scheduled = false;
      let idle: Promise<void> | null = null;
      let tellIdle = (): void => {};

      async function run(entry: Entry): Promise<void> {
        running++;
        try {
          settle(entry, await process(entry.job));
        } finally {
          running--;
          if (running === 0) tellIdle();
        }
        begin();
        pump();
      }

      function begin(): void {
        while (!stopped && left > 0 && running < concurrency) {
          const entry = takeDue();
          if (entry === null) return;
          left--;
          void run(entry);
        }
      }

      /**
       * Off the path of the delivery that woke it, so that the answer is written first. As many as are due by then may
       * begin, however few at a time: were they fewer than are accepted in a turn, what waits would only grow.
       */
      function pump(): void {
        if (scheduled || stopped || due.size === 0) return;
        scheduled = true;
        setImmediate(() => {
          scheduled = false;
          moveDue();
          left = Math.min(due.size, BEGUN_AT_ONCE);
          begin();
        });
      }

      consumers.add(pump);
      setTimer();
      pump();
      return {
        async stop() {
          stopped = true;
          consumers.delete(pump);
          if (running === 0) return;
          idle ??= new Promise((resolve) => {
            tellIdle = resolve;
          });
          await idle;
        },
      };
    },
    async take() {
      const entry = takeDue();
      if (entry === null) return null;
      return { job: entry.job, settle: async (disposition) => settle(entry, disposition) };
    },
    recover: async () => moveDue(),
    async hurry() {
      for (const [, entry] of known.entries()) if (entry.state === "later") makeDue(entry);
      wake();
    },
    async pending() {
      moveDue();
      for (let entry = later.peek(); entry !== undefined && entry.state !== "later"; entry = later.peek()) {
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

const MANY = 1_000;

/** A line of entries. */
class FirstInFirstOut {
  readonly #entries: (Entry | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#entries.length - this.#head;
  }

  push(entry: Entry): void {
    this.#entries.push(entry);
  }

  shift(): Entry | undefined {
    if (this.size === 0) return undefined;
    const entry = this.#entries[this.#head];
    this.#entries[this.#head++] = undefined;
    // Places that are free go by many at a time, and when they are half of all: no entry is moved twice on average.
    if (this.#head >= MANY && this.#head * 2 >= this.#entries.length) {
      this.#entries.splice(0, this.#head);
      this.#head = 0;
    }
    return entry;
  }
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
