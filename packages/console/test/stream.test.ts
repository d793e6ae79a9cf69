import type { AnyReceiver } from "@payhooks/core";
import { Hono } from "hono";
import { expect, it, onTestFinished, vi } from "vitest";
import { Activity } from "../src/activity/activity.ts";
import { changeStream } from "../src/activity/stream.ts";

const AT_MOST_EVERY_MS = 500;

/** Lets everything that needs no timer come to rest. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

it("a page that reads slowly gets one more message if something changed during the last one", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const activity = new Activity(0);
  const change = (): void => activity.recordNotice({ type: "warning", what: "something", fix: "", at: 0 });
  const receiver = { live: () => ({ ok: true }) } as AnyReceiver;
  const app = new Hono().get("/", (c) => changeStream(c, receiver, activity));
  const reader = (await app.request("/")).body?.getReader();
  const pass = async (): Promise<void> => {
    vi.advanceTimersByTime(AT_MOST_EVERY_MS);
    await rest();
  };
  // Nothing is read, so one of these is written at last and not taken.
  for (let n = 0; n < 8; n++) {
    change();
    await pass();
  }
  let sent = 0;
  const reading = (async () => {
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
      if (new TextDecoder().decode(read.value).includes("changed")) sent++;
    }
  })();
  await rest();
  const before = sent;
  expect(before).toBeLessThan(8);
  await pass();
  expect(sent).toBe(before + 1);
  // Nothing has changed since.
  await pass();
  expect(sent).toBe(before + 1);
  await reader?.cancel();
  await reading;
});
