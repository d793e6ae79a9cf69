import { type Job, jobId, parseJobId, recordKeyOf } from "../inbox/inbox.ts";
import type { Disposition, Queue } from "../inbox/store.ts";
import { inboxError } from "../notices.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { SqliteFile } from "./store.ts";

/** A queue that the store can wake when it has added a job itself. */
export interface SqliteQueue extends Queue {
  wake(): void;
}

/** A job, and where its row lies: beside those of the records that came with its own. */
interface Taken {
  readonly job: Job;
  readonly place: number;
}

const PLACE = "coalesce((SELECT rowid FROM records WHERE key = ?), 0)";

/** Adds a job unless it is known; inside a transaction, after its record was written at that place. */
export function jobAdder(database: SqliteDatabase): (job: Job, place: number, due: number) => void {
  const insert = database.prepare("INSERT OR IGNORE INTO jobs (place, id, due) VALUES (?, ?, ?)");
  return (job, place, due) => insert.run(place, jobId(job), Math.ceil(due));
}

/**
 * Jobs in SQLite. Taking a job makes it due again after a lease, so that a dead taker's job comes back by itself; the
 * record decides whether there is anything left to do.
 */
export function sqliteQueue(
  { database, batch, clock }: SqliteFile,
  { leaseMs, pollMs }: { readonly leaseMs: number; readonly pollMs: number },
): SqliteQueue {
  const addJob = jobAdder(database);
  const findPlace = database.prepare(`SELECT ${PLACE} AS place`);
  const hasten = database.prepare(`UPDATE jobs SET due = ? WHERE place = ${PLACE} AND id = ? AND due > ?`);
  const selectDue = database.prepare("SELECT place, id FROM jobs WHERE due <= ? ORDER BY due LIMIT ?");
  const setDue = database.prepare("UPDATE jobs SET due = ? WHERE place = ? AND id = ?");
  const remove = database.prepare("DELETE FROM jobs WHERE place = ? AND id = ?");
  const countDue = database.prepare("SELECT count(*) AS n FROM jobs WHERE due <= ?");
  const nextDue = database.prepare("SELECT min(due) AS due FROM jobs WHERE due > ?");
  const consumers = new Set<() => void>();

  function takeSome(limit: number): Promise<readonly Taken[]> {
    return batch.run(() => {
      const now = clock.now();
      const taken: Taken[] = [];
      for (const { place, id } of selectDue.all(now, limit) as { place: number; id: string }[]) {
        const job = parseJobId(id);
        if (job === null) remove.run(place, id);
        else {
          setDue.run(Math.ceil(now + leaseMs), place, id);
          taken.push({ job, place });
        }
      }
      return taken;
    });
  }

  async function settle({ job, place }: Taken, disposition: Disposition): Promise<void> {
    const id = jobId(job);
    await batch.run(() => {
      if (disposition === "finished") remove.run(place, id);
      else setDue.run(Math.ceil(clock.now() + disposition.againInMs), place, id);
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
      await batch.run(() => {
        const { place } = findPlace.get(recordKeyOf(job.eventId)) as { place: number };
        addJob(job, place, clock.now() + delayMs);
      });
      wake();
    },
    async hasten(job) {
      const now = clock.now();
      await batch.run(() => hasten.run(now, recordKeyOf(job.eventId), jobId(job), now));
      wake();
    },
    async consume(process, { concurrency, notify }) {
      const running = new Set<Promise<void>>();
      let stopped = false;
      let taking: Promise<void> | null = null;
      let again = false;
      let cancelPoll: (() => void) | null = null;

      async function run(taken: Taken): Promise<void> {
        const disposition = await process(taken.job);
        // Not settled: the job is due again after its lease, and the record then says that it is finished.
        await settle(taken, disposition).catch((error: unknown) => notify(inboxError("settle", error)));
      }

      /** Says when to look again. */
      async function take(): Promise<number> {
        const free = concurrency - running.size;
        if (free <= 0 || stopped) return pollMs;
        for (const taken of await takeSome(free)) {
          const started = run(taken).finally(() => {
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
            notify(inboxError("take", error));
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
      const [taken] = await takeSome(1);
      if (taken === undefined) return null;
      return { job: taken.job, settle: (disposition) => settle(taken, disposition) };
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
