import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { isUnreadable, type ScanPage } from "@payhooks/core/inbox";
import { aesGcm, type SealKey } from "@payhooks/core/seal";
import { sqliteInbox, sqliteStore } from "@payhooks/core/sqlite";
import { anyCallbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { deliverTo, keys } from "./support/application.ts";
import { file, folder } from "./support/files.ts";
import { payhooks, RunningCommand } from "./support/run.ts";

const [old, current]: readonly [SealKey, SealKey] = [
  { id: "old", key: randomBytes(32) },
  { id: "new", key: randomBytes(32) },
];

function keyFile(name: string, ...given: readonly SealKey[]): string {
  const lines = given.map(({ id, key }) => `${id}:${Buffer.from(key).toString("base64")}`);
  return file(`# of the inbox\n${lines.join("\n")}\n`, name);
}

/** An inbox with events that wait. */
async function sealedInbox(name: string, events = 1): Promise<string> {
  const path = join(folder, name);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(path, { seal: aesGcm([old]) }),
    run: "elsewhere",
    logger: silent,
  });
  for (let at = 0; at < events; at++) {
    const fields = anyCallbackFields({ referenceId: `order-${17 + at}` });
    await deliverTo(receiver, signPaymentCallback(fields, keys.privateKey));
  }
  await receiver.close();
  return path;
}

it("seals everything anew, after which the old key is not needed", async () => {
  const path = await sealedInbox("sealed.db");
  const both = keyFile("both.keys", current, old);
  const only = keyFile("new.keys", current);
  const list = (keys: string) =>
    payhooks(["events", "--reference", "order-17", "--sqlite", path, "--seal-keys", keys]);
  expect((await list(both)).stdout).toContain("order-17");
  expect((await list(only)).stdout).not.toContain("order-17");

  const missing = await payhooks(["reseal", "--sqlite", path, "--seal-keys", only]);
  expect(missing).toMatchObject({ code: 1 });
  expect(missing.stdout).toContain("1 of the key old, which is not in the file");
  const planned = await payhooks(["reseal", "--sqlite", path, "--seal-keys", both, "--dry-run"]);
  expect(planned).toMatchObject({ code: 0, stderr: "" });
  expect(planned.stdout).toContain("1 record would be sealed with new.");
  const done = await payhooks(["reseal", "--sqlite", path, "--seal-keys", both]);
  expect(done).toMatchObject({ code: 0, stderr: "" });
  expect(done.stdout).toContain("1 record sealed with new.");

  expect((await list(only)).stdout).toContain("order-17");
  expect(readFileSync(path, "latin1")).not.toContain("Sold:");
  const again = await payhooks(["reseal", "--sqlite", path, "--seal-keys", both]);
  expect(again.stdout).toContain("0 records sealed with new.");
  expect(again.stdout).toContain("1 had this key before.");
});

it("moves a sealed inbox with its keys, and seals the new one", async () => {
  const from = await sealedInbox("moved-from.db");
  const to = join(folder, "moved-to.db");
  const both = keyFile("move.keys", current, old);
  const moved = await payhooks(["move", "--from", from, "--to", to, "--seal-keys", both]);
  expect(moved).toMatchObject({ code: 0, stderr: "" });
  const only = keyFile("move-new.keys", current);
  const found = await payhooks(["events", "--id", "any", "--sqlite", to, "--seal-keys", only]);
  expect(found.stdout).not.toContain("order-17");
  const listed = await payhooks(["events", "--sqlite", to, "--seal-keys", only]);
  expect(listed.stdout).toContain("order-17");
});

it("reseal says which line of the file is not a key, and repeats nothing of it", async () => {
  const bad = file("old:AAAA\n", "bad.keys");
  const ended = await payhooks(["events", "--sqlite", "missing.db", "--seal-keys", bad]);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toContain("Line 1 of");
  expect(ended.stderr).not.toContain("AAAA");
});

/** How many records of a file are sealed with each key. */
async function keysIn(path: string): Promise<Record<string, number>> {
  const store = sqliteStore(path, { existing: true });
  await store.open();
  const counted: Record<string, number> = {};
  for (let cursor: string | null = "0"; cursor !== null; ) {
    const page: ScanPage | undefined = await store.scan?.(cursor, 100);
    for (const { record } of page?.records ?? []) {
      const sealed = isUnreadable(record) ? record.sealed : undefined;
      // Between its two writes, a record is still to be sealed.
      const id = sealed?.isUnlisted === true ? "old" : (sealed?.keyId ?? "none");
      counted[id] = (counted[id] ?? 0) + 1;
    }
    cursor = page?.next ?? null;
  }
  await store.close();
  return counted;
}

it("reseal goes on after it was killed in the middle, and every event is found and runs once", async () => {
  const path = await sealedInbox("killed.db", 400);
  const both = keyFile("killed.keys", current, old);
  const command = ["reseal", "--sqlite", path, "--seal-keys", both];
  const running = new RunningCommand([...command, "--rate", "200"]);
  await expect.poll(async () => (await keysIn(path)).new ?? 0, { timeout: 20_000 }).toBeGreaterThan(50);
  running.process.kill("SIGKILL");
  await running.ended;
  const between = await keysIn(path);
  expect(between).toMatchObject({ old: expect.any(Number), new: expect.any(Number) });
  expect((between.old ?? 0) + (between.new ?? 0)).toBe(400);

  const done = await payhooks(command);
  expect(done.stdout).toContain(`${between.old} records sealed with new.`);
  expect(done.stdout).toContain(`${between.new} had this key before.`);
  expect(await keysIn(path)).toEqual({ new: 400 });

  const ran: string[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(path, { seal: aesGcm([current]) }),
    run: "elsewhere",
    logger: silent,
  }).ignore("WITHDRAWAL");
  receiver.onDeposit(({ referenceId }) => void ran.push(referenceId));
  expect(await receiver.events.counts()).toMatchObject({ waiting: 400 });
  expect((await receiver.events.list({ referenceId: "order-200" })).events).toHaveLength(1);
  expect(await receiver.work()).toMatchObject({ ran: 400, remaining: 0 });
  await receiver.close();
  expect(new Set(ran).size).toBe(400);
});

it("finishes the records that it is at when it is interrupted", async () => {
  const path = await sealedInbox("interrupted.db", 400);
  const both = keyFile("interrupted.keys", current, old);
  const command = ["reseal", "--sqlite", path, "--seal-keys", both];
  const running = new RunningCommand([...command, "--rate", "200"]);
  await expect.poll(async () => (await keysIn(path)).new ?? 0, { timeout: 20_000 }).toBeGreaterThan(50);
  running.process.kill("SIGINT");
  const ended = await running.ended;
  expect(ended).toMatchObject({ code: 1, stderr: "" });
  expect(ended.stdout).toContain("It was interrupted. Run it again and it goes on.");
  const { old: left = 0, new: sealed = 0 } = await keysIn(path);
  expect(ended.stdout).toContain(`${sealed} records sealed with new.`);
  const rest = await payhooks(command);
  expect(rest).toMatchObject({ code: 0 });
  expect(rest.stdout).toContain(`${left} records sealed with new.`);
});
