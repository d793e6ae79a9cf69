/** A source's event outlives the process that accepted it, and a process that does not have the source leaves it alone. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { github, type SourceEvent } from "@payhooks/core/sources";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { signers } from "@payhooks/core/testing";
import { expect, it, onTestFinished } from "vitest";
import { removeFolder } from "../support/remove-folder.ts";
import { silent } from "../support/silent.ts";

const secret = "a secret of this sender 0123456789";
const forge = () => ({ forge: github({ secret }) });

it("an event is read again from its record by a process that has its source, and by no other", async () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-sources-"));
  const inbox = () => sqliteInbox(join(folder, "events.db"));
  const accepting = createReceiver({ logger: silent, run: "elsewhere", inbox: inbox(), sources: forge() });
  const other = createReceiver({
    logger: silent,
    run: "after-response",
    inbox: inbox(),
    connect: { secret },
  });
  const running = createReceiver({ logger: silent, run: "after-response", inbox: inbox(), sources: forge() });
  onTestFinished(async () => {
    for (const one of [accepting, other, running]) await one.close({ graceMs: 0 });
    await removeFolder(folder);
  });
  other.onSettlementApproved(() => {});
  const ran: SourceEvent[] = [];
  running.on("forge", "push", (event) => void ran.push(event));

  const { rawBody, headers } = signers.github({ secret })("push", { ref: "main" }, { id: "delivery-1" });
  const reply = await accepting.sources.forge.receive({
    method: "POST",
    url: "/",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
  });
  expect(reply.status).toBe(200);
  expect(await other.work()).toMatchObject({ ran: 0, failed: 0 });
  const [waiting] = (await other.events.list({ referenceId: "delivery-1" })).events;
  expect(waiting).toMatchObject({ flow: "forge", event: "push", state: "waiting", reason: null });

  expect(await running.run(waiting?.eventId ?? "")).toEqual({ state: "done", ran: true });
  expect(ran).toEqual([
    expect.objectContaining({
      event: "push",
      data: { ref: "main" },
      headers: { "x-github-event": "push", "x-github-delivery": "delivery-1" },
      authenticated: true,
    }),
  ]);
});
