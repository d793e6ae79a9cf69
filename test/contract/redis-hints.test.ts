/** Hints of one process to others that something is due: whom they wake, how many are kept. */
import { expect, it } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { pause, type Scope, until, withScope } from "../faults/harness/scope.ts";
import { redisStoreFixture } from "./redis-store-fixture.ts";

/** Writes an event that nobody has begun, and tells others of it. */
async function announce(store: RecordStore, key: string): Promise<void> {
  await put(store, key, null, acceptedRecord(key, store.now(key)), { shouldAnnounce: true });
}

async function listening(store: RecordStore, wake: () => void): Promise<() => void> {
  if (store.onDue === undefined) throw new Error("It does not listen.");
  return store.onDue(() => {
    wake();
    return true;
  });
}

async function start(scope: Scope, processes: number) {
  const server = await RedisServer.start(scope);
  const fixture = redisStoreFixture(() => server.url);
  const stores = Array.from({ length: processes }, () => scope.add(fixture.connect(), (one) => one.close()));
  for (const store of stores) await store.open();
  const waiters = (count: number) =>
    until("they listen", async () => Number(await server.info("blocked_clients")) === count);
  return { server, prefix: fixture.prefix, stores, waiters };
}

it("an idle process gets an event of another process by a hint alone, without looking for it", () =>
  withScope(async (scope) => {
    const { stores, waiters } = await start(scope, 2);
    const [sender, listener] = stores;
    if (sender === undefined || listener === undefined) throw new Error("no stores");
    const taken: string[] = [];
    let polls = 0;
    await listening(listener, async () => {
      polls++;
      for (const { key } of (await takeOfBothLanes(listener, 10, 60_000)).records) taken.push(key);
    });
    const keys = Array.from({ length: 200 }, (_, n) => keyOf(n));
    for (const [n, key] of keys.entries()) {
      await waiters(1);
      await announce(sender, key);
      await until("it was taken", () => taken.length === n + 1, { everyMs: 1 });
    }
    expect(taken).toEqual(keys);
    expect(polls).toBe(200);
  }));

it("one event wakes one of many listening processes, in turns", () =>
  withScope(async (scope) => {
    const { stores, waiters } = await start(scope, 20);
    const [sender] = stores;
    if (sender === undefined) throw new Error("no stores");
    const woken = stores.map(() => 0);
    for (const [at, store] of stores.entries()) {
      await listening(store, () => {
        woken[at] = (woken[at] ?? 0) + 1;
      });
    }
    const total = (): number => woken.reduce((sum, one) => sum + one, 0);
    for (let n = 1; n <= 40; n++) {
      await waiters(20);
      await announce(sender, keyOf(n));
      await until("one is woken", () => total() === n, { everyMs: 2 });
    }
    expect(total()).toBe(40);
    expect(woken).toEqual(woken.map(() => 2));
  }));

it("a process that no longer listens passes the hint on", () =>
  withScope(async (scope) => {
    const { stores, waiters } = await start(scope, 2);
    const [gone, there] = stores;
    if (gone === undefined || there === undefined) throw new Error("no stores");
    const end = await listening(gone, () => expect.fail("it was woken after its end"));
    await waiters(1);
    let woken = 0;
    await listening(there, () => {
      woken++;
    });
    await waiters(2);
    end();
    await announce(gone, keyOf(1));
    await until("the other one is woken", () => woken === 1);
  }));

it("a process without a free place passes the hint on", () =>
  withScope(async (scope) => {
    const { stores, waiters } = await start(scope, 2);
    const [busy, idle] = stores;
    if (busy === undefined || idle === undefined) throw new Error("no stores");
    let refused = 0;
    await busy.onDue?.(() => {
      refused++;
      return false;
    });
    await waiters(1);
    let woken = 0;
    await listening(idle, () => {
      woken++;
    });
    await waiters(2);
    await announce(busy, keyOf(1));
    await until("the other one is woken", () => woken === 1);
    expect(refused).toBe(1);
  }));

it("hints that no process hears are few and do not last", () =>
  withScope(async (scope) => {
    const { server, prefix, stores } = await start(scope, 1);
    const [sender] = stores;
    if (sender === undefined) throw new Error("no stores");
    await Promise.all(Array.from({ length: 100 }, (_, n) => announce(sender, keyOf(n))));
    const key = await until("hints are there", async () => {
      const [found] = (await server.tell("KEYS", `${prefix}:*:hints`)) as string[];
      return found ?? null;
    });
    const kept = Number(await server.tell("LLEN", key));
    expect(kept).toBeLessThanOrEqual(16);
    await pause(1_100);
    expect(await server.tell("EXISTS", key)).toBe(0);
  }));

it("a process that listened while Redis was away hears of later events", () =>
  withScope(async (scope) => {
    const { server, stores, waiters } = await start(scope, 2);
    const [sender, listener] = stores;
    if (sender === undefined || listener === undefined) throw new Error("no stores");
    let woken = 0;
    await listening(listener, () => {
      woken++;
    });
    await waiters(1);
    await server.kill();
    await server.up();
    await waiters(1);
    await until("writes are taken", () =>
      sendCanary(sender).then(
        () => true,
        () => false,
      ),
    );
    await announce(sender, keyOf(1));
    await until("it is woken", () => woken === 1);
  }));
