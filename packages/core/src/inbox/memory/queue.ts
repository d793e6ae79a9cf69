import type { Clock } from "../../clock.ts";
import { InFlight } from "../in-flight.ts";
import { type Job, jobId } from "../inbox.ts";
import type { Disposition, Queue } from "../store.ts";
import { EarliestFirst, FirstInFirstOut } from "./lines.ts";

interface Entry {
  readonly id: string;
  readonly job: Job;
  /** 0: at once. */
  readonly dueAt: number;
  /** `gone`: replaced by an earlier one. */
  state: "due" | "later" | "active" | "gone";
  addedMeanwhile: boolean;
}

/** Jobs that begin in one turn of the event loop at most, so that deliveries do not wait long for quick handlers. */
const BEGUN_AT_ONCE = 256;

/** The event's own id, whose hash the engine knows already, unless it was replayed. */
function idOf(job: Job): string {
  return job.replay === 0 ? job.eventId : jobId(job);
}

type Process = (job: Job) => Promise<Disposition>;

/** A queue that also takes a job at once, for a store that queues what it accepts in one step. */
export interface MemoryQueue extends Queue {
  /** As `add`, at once. */
  schedule(job: Job, delayMs: number): void;
}

/** Jobs in this process: due ones in order of arrival, later ones by time. Bounded by the store's unfinished events. */
export function memoryQueue({ clock }: { readonly clock: Clock }): MemoryQueue {
  /** What waits or is worked on. */
  const known = new InFlight<string, Entry>();
  const due = new FirstInFirstOut<Entry>();
  const later = new EarliestFirst<Entry>();
  const consumers = new Set<() => void>();
  let cancelTimer: (() => void) | null = null;
  let timerAt = Number.POSITIVE_INFINITY;

  function schedule(job: Job, delayMs: number): void {
    const id = idOf(job);
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
      if (known.get(idOf(job)) !== undefined) schedule(job, 0);
    },
    async consume(process: Process, { concurrency }) {
      let running = 0;
      /** Jobs that may still begin before the event loop has had its turn. */
      let left = 0;
      let stopped = false;
      let scheduled = false;
      /** Those who have stopped it, and wait for what runs. */
      const stoppers: (() => void)[] = [];

      async function run(entry: Entry): Promise<void> {
        running++;
        try {
          settle(entry, await process(entry.job));
        } finally {
          running--;
          if (running === 0) for (const tell of stoppers) tell();
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
          if (running > 0) await new Promise<void>((resolve) => stoppers.push(resolve));
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
