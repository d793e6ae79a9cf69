import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createReceiver,
  type Inbox,
  memoryInbox,
  type Notice,
  type Receiver,
  type ReceiverOptions,
} from "@payhooks/core";
import { createInbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { removeFolder } from "../../../../test/support/remove-folder.ts";
import { silent } from "../../../../test/support/silent.ts";
import { Lifecycle, type LifecycleDependencies } from "../../src/receiver/lifecycle.ts";
import { openDatabase } from "../../src/sqlite/driver.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { codeOfReply, deliveryOf, noticed, rejectedBy } from "../receiving.ts";

const keys = createTestKeys();

function receiverOn(inbox: Inbox, options: Partial<ReceiverOptions> = {}): Receiver {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox,
    logger: silent,
    ...options,
  });
  return receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
}

const delivery = (payTxnId: string) =>
  deliveryOf(signPaymentCallback(callbackFields({ payTxnId }), keys.privateKey));

/** Something that is waited for until the test lets it go. */
function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

describe("the life of a receiver", () => {
  /** A life whose ways take as long as the test says, and what holds its process. */
  function life(dependencies: Partial<LifecycleDependencies> = {}) {
    let held = 0;
    const lifecycle = new Lifecycle({
      goal: "running",
      notify: () => {},
      environment: {
        ...environmentOf(),
        keepAlive: () => {
          held++;
          return () => held--;
        },
      },
      prepare: async () => {},
      run: async () => ({ pause: () => {}, resume: () => {}, stop: async () => {} }),
      close: async () => ({ unfinished: 0 }),
      ...dependencies,
    });
    return { lifecycle, held: () => held };
  }

  it("goes from new to ready, running and closed, and keeps the process alive during each change only", async () => {
    const ways = { prepare: gate(), run: gate(), close: gate() };
    const { lifecycle, held } = life({
      prepare: () => ways.prepare.passed,
      run: async () => {
        await ways.run.passed;
        return { pause: () => {}, resume: () => {}, stop: async () => {} };
      },
      close: async () => {
        await ways.close.passed;
        return { unfinished: 3 };
      },
    });
    expect([lifecycle.state, held()]).toEqual(["new", 0]);
    const preparing = lifecycle.prepare();
    expect([lifecycle.state, held()]).toEqual(["preparing", 1]);
    ways.prepare.open();
    await preparing;
    expect([lifecycle.state, held()]).toEqual(["ready", 0]);
    const starting = Promise.all([lifecycle.start(), lifecycle.start()]);
    await noticed();
    expect([lifecycle.state, held()]).toEqual(["starting", 1]);
    ways.run.open();
    await starting;
    expect([lifecycle.state, held()]).toEqual(["running", 0]);
    const closing = lifecycle.close({ graceMs: 0 });
    expect([lifecycle.state, held()]).toEqual(["closing", 1]);
    ways.close.open();
    expect(await closing).toEqual({ unfinished: 3 });
    expect([lifecycle.state, held()]).toEqual(["closed", 0]);
    expect(lifecycle.close({ graceMs: 0 })).toBe(lifecycle.close({ graceMs: 9 }));
  });

  it("ends at ready if its events do not run in the background, and no call of start leads further", async () => {
    const { lifecycle } = life({
      goal: "ready",
      run: () => Promise.reject(new Error("nothing may run here")),
    });
    expect([lifecycle.startProblem, lifecycle.shouldRun]).toEqual([null, false]);
    const starting = Promise.all([lifecycle.start(), lifecycle.start()]);
    expect(lifecycle.startProblem).toEqual({ cause: null });
    await starting;
    await lifecycle.start();
    expect([lifecycle.state, lifecycle.startProblem, lifecycle.shouldRun]).toEqual(["ready", null, false]);
  });

  it("stays where it was when a change fails, and the next call tries again", async () => {
    let fails = true;
    const failing = async (): Promise<void> => {
      if (fails) throw new Error("not yet");
    };
    const running = { pause: () => {}, resume: () => {}, stop: async () => {} };
    const first = life({ prepare: failing });
    await expect(first.lifecycle.start()).rejects.toThrow("not yet");
    expect([first.lifecycle.state, first.held()]).toEqual(["new", 0]);
    const second = life({ run: () => failing().then(() => running) });
    await expect(second.lifecycle.start()).rejects.toThrow("not yet");
    expect([second.lifecycle.state, second.held()]).toEqual(["ready", 0]);
    fails = false;
    await first.lifecycle.start();
    await second.lifecycle.start();
    expect([first.lifecycle.state, second.lifecycle.state]).toEqual(["running", "running"]);
  });

  it("that is closed during a change stays closed, and refuses every call", async () => {
    const way = gate();
    const { lifecycle, held } = life({ prepare: () => way.passed });
    const starting = rejectedBy(lifecycle.start());
    await lifecycle.close({ graceMs: 0 });
    way.open();
    expect((await starting).code).toBe("ERR_CLOSING");
    for (const call of [lifecycle.prepare(), lifecycle.start(), lifecycle.during(async () => {})]) {
      expect((await rejectedBy(call)).code).toBe("ERR_CLOSING");
    }
    expect([lifecycle.state, held()]).toEqual(["closed", 0]);
  });
});

describe("start", () => {
  it("rejects with ERR_INBOX_UNAVAILABLE while the store is away, and the next call tries again", async () => {
    let isAway = true;
    let opened = 0;
    const store: RecordStore = {
      ...memoryStore(),
      async open() {
        opened++;
        if (isAway) throw Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
      },
    };
    const receiver = receiverOn(createInbox(store));
    const notices: Notice[] = [];
    receiver.observe((notice) => notices.push(notice));
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect((await rejectedBy(receiver.start())).code).toBe("ERR_INBOX_UNAVAILABLE");
      expect(opened).toBe(attempt);
    }
    isAway = false;
    await receiver.start();
    expect((await receiver.payments.receive(delivery("one"))).status).toBe(200);
    await receiver.close();
    expect(notices.filter(({ type }) => type === "inbox-error")).not.toEqual([]);
  });

  it("is refused after a close, and so is everything else", async () => {
    const receiver = receiverOn(memoryInbox());
    await receiver.start();
    await receiver.close();
    const calls = [
      () => receiver.start(),
      () => receiver.work(),
      () => receiver.run("0".repeat(48)),
      () => receiver.events.get("0".repeat(48)),
      () => receiver.events.discard("0".repeat(48), { by: "me", note: "" }),
    ];
    for (const call of calls) expect((await rejectedBy(call())).code).toBe("ERR_CLOSING");
    expect(await receiver.health()).toMatchObject({ ok: false, detail: expect.stringContaining("closed") });
  });
});

describe("ready", () => {
  it("with maxDueAgeMs says no while it is not known how long events have been due", async () => {
    const store: RecordStore = {
      ...memoryStore(),
      counts: () => Promise.reject(new Error("it takes too long")),
      endsWithProcess: false,
    };
    const receiver = receiverOn(createInbox(store));
    await receiver.start();
    expect(await receiver.ready()).toEqual({ ok: true, code: null, detail: null });
    expect(await receiver.ready({ maxDueAgeMs: 60_000 })).toEqual({
      ok: false,
      code: "not-counted",
      detail: "the events that are due could not be counted",
    });
    await receiver.close();
  });
});

describe("close", () => {
  it("waits for an inbox that is being opened, and closes it once", async () => {
    const opening = gate();
    const calls: string[] = [];
    const store: RecordStore = {
      ...memoryStore(),
      async open() {
        await opening.passed;
        calls.push("opened");
      },
      async close() {
        calls.push("closed");
      },
    };
    const receiver = receiverOn(createInbox(store));
    const starting = rejectedBy(receiver.start());
    await noticed();
    const closing = receiver.close();
    await noticed();
    expect(calls).toEqual([]);
    opening.open();
    await closing;
    expect((await starting).code).toBe("ERR_CLOSING");
    expect(calls).toEqual(["opened", "closed"]);
  });

  it("waits for the events that work() is just being given, and hands them back before it closes the store", async () => {
    const given = gate();
    const calls: string[] = [];
    const memory = memoryStore();
    let isClosed = false;
    const store: RecordStore = {
      ...memory,
      endsWithProcess: false,
      async takeDue(limit, hideMs) {
        const due = await memory.takeDue(limit, hideMs);
        if (limit.usual > 0 && due.records.length > 0) await given.passed;
        return due;
      },
      swap(items) {
        calls.push(isClosed ? "written after the close" : "written");
        return memory.swap(items);
      },
      async close() {
        isClosed = true;
        calls.push("closed");
      },
    };
    const receiver = receiverOn(createInbox(store), { run: "elsewhere" });
    const notices: Notice[] = [];
    receiver.observe((notice) => notices.push(notice));
    await receiver.start();
    await receiver.payments.receive(delivery("one"));
    const working = receiver.work();
    await noticed();
    const closing = receiver.close();
    await noticed();
    expect(calls).not.toContain("closed");
    given.open();
    await closing;
    await working;
    expect(calls.at(-1)).toBe("closed");
    expect(notices.filter(({ type }) => type === "inbox-error")).toEqual([]);
  });

  it("waits for a store that is being opened no longer than for handlers", async () => {
    const calls: string[] = [];
    const store: RecordStore = {
      ...memoryStore(),
      open: () => new Promise(() => {}),
      async close() {
        calls.push("closed");
      },
    };
    const receiver = receiverOn(createInbox(store));
    void receiver.start().catch(() => {});
    await noticed();
    await receiver.close({ graceMs: 50 });
    expect(calls).toEqual(["closed"]);
  });

  it("lets a delivery that waits for its key be refused, since nobody would run its event", async () => {
    const key = gate();
    const inbox = memoryInbox();
    const receiver = receiverOn(inbox, {
      payments: { publicKey: () => key.passed.then(() => ({ tenant: "m", keys: keys.publicKey })) },
    });
    await receiver.start();
    const replying = receiver.payments.receive(delivery("one"));
    await noticed();
    const closing = receiver.close();
    await noticed();
    key.open();
    const reply = await replying;
    expect([reply.status, codeOfReply(reply)]).toEqual([503, "ERR_CLOSING"]);
    expect(await closing).toEqual({ unfinished: 0 });
  });

  it("waits for the answers to accepted deliveries, and ends their connections with them", async () => {
    const handled = gate();
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: memoryInbox(),
      ack: "handled",
      logger: silent,
    }).onDeposit(() => handled.passed);
    await receiver.start();
    const order: string[] = [];
    const replying = receiver.payments.receive(delivery("one")).then((reply) => {
      order.push("answered");
      return reply;
    });
    await noticed();
    const closing = receiver.close().then((closed) => {
      order.push("closed");
      return closed;
    });
    await noticed();
    handled.open();
    expect(await closing).toEqual({ unfinished: 0 });
    expect(order).toEqual(["answered", "closed"]);
    expect(await replying).toMatchObject({ status: 200, headers: { connection: "close" } });
  });

  it("ends the connection with every answer, and no connection before it is called", async () => {
    const receiver = receiverOn(memoryInbox());
    await receiver.start();
    const before = await receiver.payments.receive(delivery("one"));
    const early = receiver.payments.refuse("ERR_BODY_INCOMPLETE", "the test");
    for (const { headers } of [before, early]) expect(headers).not.toHaveProperty("connection");
    const closing = receiver.close();
    const after = await receiver.payments.receive(delivery("two"));
    const late = receiver.payments.refuse("ERR_BODY_INCOMPLETE", "the test");
    const head = receiver.payments.check({ method: "GET", headers: { get: () => null } });
    expect([after.status, late.status, head?.status]).toEqual([503, 400, 405]);
    for (const reply of [after, late, head]) expect(reply?.headers).toMatchObject({ connection: "close" });
    await closing;
  });
});

describe("a process with nothing but a receiver", { timeout: 30_000 }, () => {
  function newFile(): string {
    const folder = mkdtempSync(join(tmpdir(), "payhooks-lifecycle-"));
    onTestFinished(() => removeFolder(folder));
    return join(folder, "inbox.db");
  }

  /** Its exit code and what it has printed. */
  function run(
    file: string,
    started: () => void = () => {},
  ): Promise<{ readonly code: number | null; readonly output: string }> {
    const path = fileURLToPath(new URL("lifecycle-process.ts", import.meta.url));
    const flags = ["--conditions=payhooks-source", "--import=tsx", path, file];
    const child = spawn(process.execPath, flags, { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    started();
    return new Promise((resolve) => child.once("close", (code) => resolve({ code, output })));
  }

  const WHOLE = {
    code: 0,
    output: "started\nanswered 200\nhandled one\nclosed, 0 unfinished\n",
  };

  it("lives until the close has ended, and not longer: in memory", async () => {
    expect(await run("")).toEqual(WHOLE);
  });

  it("lives until the close has ended, and not longer: on SQLite", async () => {
    expect(await run(newFile())).toEqual(WHOLE);
  });

  it("lives while the start waits for a file that another process has locked", async () => {
    const file = newFile();
    const database = await openDatabase(file);
    onTestFinished(() => void database.close());
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("BEGIN EXCLUSIVE");
    const running = run(file, () => setTimeout(() => database.exec("COMMIT"), 2_500));
    expect(await running).toEqual(WHOLE);
  });
});
