import { type Job, jobId, parseJobId } from "../inbox/inbox.ts";
import type { Disposition, Queue } from "../inbox/store.ts";
import type { SqliteFile } from "./store.ts";

/** A queue that the store can wake when it has added a job itself. */
export interface SqliteQueue extends Queue {
  wake(): void;
}

/**
 * Jobs in SQLite. Taking a job makes it due again after a lease, so that a dead taker's job comes back by itself; the
 * record decides whether there is anything left to do.
 */
export function sqliteQueue(
  { database, batch, clock }: SqliteFile,
  { leaseMs, pollMs }: { readonly leaseMs: number; readonly pollMs: number },
): SqliteQueue {
  const insert = database.prepare("INSERT OR IGNORE INTO jobs (id, due) VALUES (?, ?)");
  const hasten = database.prepare("UPDATE jobs SET due = ? WHERE id = ? AND due > ?");
  const selectDue = database.prepare("SELECT id FROM jobs WHERE due <= ? ORDER BY due LIMIT ?");
  const setDue = database.prepare("UPDATE jobs SET due = ? WHERE id = ?");
  const remove = database.prepare("DELETE FROM jobs WHERE id = ?");
  const countDue = database.prepare("SELECT count(*) AS n FROM jobs WHERE due <= ?");
  const nextDue = database.prepare("SELECT min(due) AS due FROM jobs WHERE due > ?");
  const consumers = new Set<() => void>();

  function takeSome(limit: number): Promise<readonly Job[]> {
    return batch.run(() => {
      const now = clock.now();
      const jobs: Job[] = [];
      for (const row of selectDue.all(now, limit) as { id: string }[]) {
        const job = parseJobId(row.id);
        if (job === null) remove.run(row.id);
        else {
          setDue.run(Math.ceil(now + leaseMs), row.id);
          jobs.push(job);
        }
      }
      return jobs;
    });
  }

  async function settle(job: Job, disposition: Disposition): Promise<void> {
    const id = jobId(job);
    await batch.run(() => {
      if (disposition === "finished") remove.run(id);
      else setDue.run(Math.ceil(clock.now() + disposition.againInMs), id);
    });
    if (disposition !== "finished" && disposition.againInMs <= 0) wake();
  }

  function wake(): void {
    for (const pump of consumers) pump();
  }

  function msToNext(): number {
    const row = nextDue.get(clock.now()) as { due: number | null } | undefined;
    return row?.due == null ? pollMs : Math.min(pollMs, Math.max(1, row.due - clock.now()));
  }

  return {
    wake,
    ready: async () => {},
    async add(job, { delayMs }) {
      await batch.run(() => insert.run(jobId(job), Math.ceil(clock.now() + delayMs)));
      wake();
    },
    async hasten(job) {
      const now = clock.now();
      await batch.run(() => hasten.run(now, jobId(job), now));
      wake();
    },
    async consume(process, { concurrency, notify }) {
      const running = new Set<Promise<void>>();
      let stopped = false;
      let taking: Promise<void> | null = null;
      let again = false;
      let cancelPoll: (() => void) | null = null;

      async function run(job: Job): Promise<void> {
        const disposition = await process(job);
        // Not settled: the job is due again after its lease, and the record then says that it is finished.
        await settle(job, disposition).catch((error: unknown) =>
          notify({ type: "inbox-error", during: "settle", error: String(error) }),
        );
      }

      /** Says when to look again. */
      async function take(): Promise<number> {
        const free = concurrency - running.size;
        if (free <= 0 || stopped) return pollMs;
        const jobs = await takeSome(free);
        for (const job of jobs) {
          const started = run(job).finally(() => {
            running.delete(started);
            pump();
          });
          running.add(started);
        }
        return msToNext();
      }

      /** One look at a time; who asks during one, gets another after it. */
      function pump(): void {
        if (stopped) return;
        if (taking !== null) {
          again = true;
          return;
        }
        cancelPoll?.();
        again = false;
        taking = take()
          .catch((error: unknown) => {
            notify({ type: "inbox-error", during: "take", error: String(error) });
            return pollMs;
          })
          .then((lookAgainInMs) => {
            taking = null;
            if (stopped) return;
            if (again) pump();
            else cancelPoll = clock.after(lookAgainInMs, pump);
          });
      }

      consumers.add(pump);
      pump();
      return {
        async stop() {
          stopped = true;
          consumers.delete(pump);
          cancelPoll?.();
          await taking;
          await Promise.all(running);
        },
      };
    },
    async take() {
      const [job] = await takeSome(1);
      return job === undefined ? null : { job, settle: (disposition) => settle(job, disposition) };
    },
    recover: async () => {},
    async pending() {
      const now = clock.now();
      const { n } = countDue.get(now) as { n: number };
      const { due } = nextDue.get(now) as { due: number | null };
      return { due: Number(n), nextDueAt: due === null ? null : Number(due) };
    },
    close: async () => {},
  };
}
