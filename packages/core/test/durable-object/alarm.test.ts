/**
 * The alarm that the inbox asks for, on a real SQLite. That the platform keeps and rings it is seen on workerd: `npm run test:runtimes`.
 */
import { createReceiver, type Receiver, RetryAfter } from "@payhooks/core";
import { durableObjectInbox, type ObjectStorage, workAtAlarm } from "@payhooks/core/durable-object";
import {
  callbackFields,
  createTestKeys,
  type FakeClock,
  fakeClock,
  signPaymentCallback,
} from "@payhooks/core/testing";
import Database from "libsql";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { newSeed, seededRandom } from "../../src/testing/store/random.ts";
import { deliveryOf } from "../receiving.ts";

const keys = createTestKeys();
const LEASE_MS = 30_000;

/** The part of an object's storage that a database can be, with an alarm that is written down. */
function newStorage() {
  const database = new Database(":memory:");
  const storage = {
    alarm: null as number | null,
    sets: 0,
    sql: {
      exec(text: string, ...bindings: readonly (string | number | null)[]) {
        if (/^\s*SELECT/.test(text)) {
          const rows = database.prepare(text).all(...bindings);
          return { toArray: () => rows };
        }
        if (bindings.length === 0) database.exec(text);
        else database.prepare(text).run(...bindings);
        return { toArray: () => [] };
      },
    },
    transactionSync<T>(work: () => T): T {
      database.exec("BEGIN");
      try {
        const value = work();
        database.exec("COMMIT");
        return value;
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    },
    async setAlarm(at: number) {
      storage.sets++;
      storage.alarm = at;
    },
    async deleteAlarm() {
      storage.alarm = null;
    },
    earliestDueAt(): number | null {
      const { at } = database.prepare("SELECT min(due_at) AS at FROM records").get() as { at: number | null };
      return at;
    },
    run: (text: string) => database.exec(text),
  };
  return storage satisfies ObjectStorage;
}
type Storage = ReturnType<typeof newStorage>;

/** A clock that counts the timers that wait. */
function countingClock(): FakeClock & { timers(): number } {
  const clock = fakeClock();
  let waiting = 0;
  return {
    ...clock,
    timers: () => waiting,
    after(ms, callback) {
      waiting++;
      let isOver = false;
      const over = (): void => {
        if (!isOver) waiting--;
        isOver = true;
      };
      const cancel = clock.after(ms, () => {
        over();
        callback();
      });
      return () => {
        over();
        cancel();
      };
    },
  };
}

type OnDeposit = (referenceId: string, attempt: number) => Promise<void> | void;

/** The object in memory: evicted, a new one is made of the same storage. */
function objectOn(storage: Storage, clock: FakeClock, onDeposit: OnDeposit) {
  const receiver: Receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: durableObjectInbox(storage, { leaseMs: LEASE_MS, clock }),
    run: "after-response",
    clock,
    logger: silent,
  });
  receiver.onDeposit(async ({ referenceId }, { attempt }) => onDeposit(referenceId, attempt));
  receiver.ignore("WITHDRAWAL");
  /** Resolves when the answer is there. The work that it leaves behind is given to `after`. */
  async function deliver(
    referenceId: string,
    after: (work: Promise<unknown>) => void = () => {},
  ): Promise<void> {
    const fields = callbackFields({ referenceId }, clock.now());
    const delivery = deliveryOf(signPaymentCallback(fields, keys.privateKey));
    expect((await receiver.payments.receive({ ...delivery, waitUntil: after })).status).toBe(200);
  }
  return {
    receiver,
    deliver,
    /** Resolves when the work that the answer leaves behind has ended too. */
    async deliverAndRun(referenceId: string): Promise<void> {
      const work: Promise<unknown>[] = [];
      await deliver(referenceId, (after) => work.push(after));
      await Promise.all(work);
    },
  };
}

describe("the alarm of an object", () => {
  it("comes at the end of the lease while an event runs, at its retry when it has failed, and not when it is done", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    const during: (number | null)[] = [];
    const { deliver, receiver } = objectOn(storage, clock, (_reference, attempt) => {
      during.push(storage.alarm);
      if (attempt === 1) throw new RetryAfter(60_000);
    });
    const work: Promise<unknown>[] = [];
    const start = clock.now();
    await deliver("order-1", (after) => work.push(after));
    expect(storage.alarm).not.toBeNull();
    await Promise.all(work);
    expect(storage.alarm).toBe(start + 60_000);
    await clock.advance(60_000);
    await workAtAlarm(receiver, storage);
    expect(storage.alarm).toBeNull();
    expect(during).toEqual([start + LEASE_MS, start + 60_000 + LEASE_MS]);
  });

  it("comes for an event whose request was cut off before its handler was called", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    const evicted = objectOn(storage, clock, () => {});
    await evicted.deliver("order-1");
    expect(storage.alarm).toBeLessThanOrEqual(clock.now() + LEASE_MS);
  });

  it("is the earliest time at which anything is due, whatever happens", async () => {
    const seed = newSeed("alarms");
    const random = seededRandom(seed);
    const [storage, clock] = [newStorage(), countingClock()];
    const make = () =>
      objectOn(storage, clock, () => {
        if (random() < 0.5) throw new RetryAfter(Math.ceil(random() * 100_000));
      });
    let object = make();
    await object.receiver.health();
    let checks = 0;
    for (let step = 0; step < 150; step++) {
      const dice = random();
      if (dice < 0.4) {
        await object.deliverAndRun(`order-${step}`);
      } else if (dice < 0.7) await clock.advance(Math.ceil(random() * 40_000));
      else if (dice < 0.8) object = make();
      else if (storage.alarm !== null) {
        await clock.advance(Math.max(0, storage.alarm - clock.now()));
        storage.alarm = null;
        await workAtAlarm(object.receiver, storage);
      }
      const due = storage.earliestDueAt();
      const from = (at: number | null): number | null => (at === null ? null : Math.max(at, clock.now()));
      expect(from(storage.alarm), `seed ${seed}, step ${step}`).toBe(from(due));
      if (due !== null) checks++;
    }
    expect(checks).toBeGreaterThan(10);
  });

  it("is set again by what it runs, if it came a little too early for the object's clock", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    const { deliverAndRun, receiver } = objectOn(storage, clock, (_reference, attempt) => {
      if (attempt === 1) throw new RetryAfter(60_000);
    });
    await deliverAndRun("order-1");
    const at = storage.alarm;
    await clock.advance(59_000);
    storage.alarm = null;
    await workAtAlarm(receiver, storage);
    expect(storage.alarm).toBe(at);
  });

  it("is not set again by writes that leave it where it is", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    const { receiver } = objectOn(storage, clock, () => {});
    await receiver.health();
    const { sets } = storage;
    const lease = await receiver.lease("a-task", 1_000);
    expect(await lease?.renew("a note")).toBe(true);
    expect([storage.sets, storage.alarm]).toEqual([sets, null]);
  });

  it("is set when the object wakes, if the platform has dropped it", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    await objectOn(storage, clock, () => {}).deliver("order-1");
    const { alarm } = storage;
    storage.alarm = null;
    const { receiver } = objectOn(storage, clock, () => {});
    expect(await receiver.events.list({ state: "waiting" })).toMatchObject({
      events: [{ referenceId: "order-1" }],
    });
    expect(storage.alarm).toBe(alarm);
  });

  it("is the only thing that waits: no timer keeps the object awake", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    const { deliverAndRun, receiver } = objectOn(storage, clock, (_reference, attempt) => {
      if (attempt === 1) throw new RetryAfter(60_000);
    });
    await deliverAndRun("order-1");
    expect(clock.timers()).toBe(0);
    await clock.advance(60_000);
    await workAtAlarm(receiver, storage);
    expect(clock.timers()).toBe(0);
  });

  it("comes again in a minute if the due events could not be run, and the reason is logged", async () => {
    const storage = newStorage();
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: durableObjectInbox(storage),
      logger: silent,
    });
    const before = Date.now();
    await workAtAlarm(receiver, storage);
    expect(storage.alarm).toBeGreaterThanOrEqual(before + 60_000);
    expect(logged.mock.calls.flat().join()).toContain("ERR_NO_HANDLERS");
  });
});

const HOUR = 3_600_000;

describe("an alarm that failed", () => {
  it("leaves no event behind: the next one sets the alarm of the events that wait longer", async () => {
    const [storage, clock] = [newStorage(), countingClock()];
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    const { deliverAndRun, receiver } = objectOn(storage, clock, (referenceId, attempt) => {
      if (attempt === 1) throw new RetryAfter(referenceId === "order-soon" ? HOUR : 10 * HOUR);
    });
    const start = clock.now();
    await deliverAndRun("order-soon");
    await deliverAndRun("order-late");
    async function ring(): Promise<void> {
      await clock.advance(HOUR);
      storage.alarm = null;
      await workAtAlarm(receiver, storage);
    }
    // Everything that is due has run when this makes the alarm fail, which deletes expired records once an hour.
    let isToFail = true;
    receiver.observe(({ type }) => {
      if (type === "finished" && isToFail) storage.run("ALTER TABLE records RENAME TO away");
    });
    await ring();
    isToFail = false;
    expect(logged).toHaveBeenCalledOnce();
    expect(storage.alarm).not.toBeNull();
    storage.run("ALTER TABLE away RENAME TO records");
    await ring();
    expect(storage.alarm).toBe(start + 10 * HOUR);
  });
});

describe("an object that cannot be an inbox", () => {
  const opening = (storage: ObjectStorage) => durableObjectInbox(storage).ready();
  const unsuitable = { code: "ERR_SQLITE_UNSUITABLE" };

  it("has no alarm()", async () => {
    const storage = newStorage();
    const setAlarm = () => Promise.reject(new TypeError("Your class must have an alarm() handler"));
    await expect(opening({ ...storage, setAlarm })).rejects.toMatchObject({
      ...unsuitable,
      fix: expect.stringContaining("that has an alarm()"),
    });
  });

  it("has no SQLite storage", async () => {
    const { sql: _, ...storage } = newStorage();
    await expect(opening(storage as unknown as ObjectStorage)).rejects.toMatchObject(unsuitable);
  });

  it("has a table of its own with a name of the inbox", async () => {
    const storage = newStorage();
    storage.run("CREATE TABLE events (name TEXT)");
    await expect(opening(storage)).rejects.toMatchObject(unsuitable);
  });

  it("has tables of another version", async () => {
    const storage = newStorage();
    await opening(storage);
    storage.run("UPDATE meta SET value = value + 1 WHERE name = 'version'");
    await expect(opening(storage)).rejects.toMatchObject({
      ...unsuitable,
      message: expect.stringContaining("this package knows"),
    });
  });
});
