import type { Notice } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import { Activity } from "../src/activity/activity.ts";
import { consoleFixture } from "./support/console-fixture.ts";

const START = Date.UTC(2026, 10, 22, 12, 0, 30);
const MINUTE = 60_000;
const FACTS = {
  flow: "payments",
  tenant: "",
  eventId: "0".repeat(48),
  id: "1",
  event: "DEPOSIT",
  status: "SUCCESS",
  referenceId: null,
} as const;
const accepted = (at: number): Notice => ({
  type: "accepted",
  ...FACTS,
  keyId: null,
  previousAmount: null,
  at,
});

describe("what a process has seen", () => {
  it("is counted by minute, the last one at the end", () => {
    const activity = new Activity(START);
    activity.recordNotice(accepted(START));
    activity.recordNotice(accepted(START + MINUTE));
    activity.recordNotice(accepted(START + MINUTE));
    expect(activity.minutes(START + 2 * MINUTE, 3).map(({ deliveries }) => deliveries)).toEqual([1, 2, 0]);
    expect(activity.minutes(START + 2 * MINUTE, 3)[0]?.at).toBe(START - 30_000);
  });

  it("is forgotten after a day, and takes no more room then", () => {
    const activity = new Activity(START);
    for (let day = 0; day < 3; day++) {
      for (let minute = 0; minute < 24 * 60; minute++) {
        activity.recordNotice(accepted(START + (day * 24 * 60 + minute) * MINUTE));
      }
    }
    const now = START + (3 * 24 * 60 - 1) * MINUTE;
    const minutes = activity.minutes(now, 10_000);
    expect(minutes).toHaveLength(24 * 60);
    expect(minutes.every(({ deliveries }) => deliveries === 1)).toBe(true);
    expect(
      activity.minutes(now + 24 * 60 * MINUTE, 24 * 60).every(({ deliveries }) => deliveries === 0),
    ).toBe(true);
  });

  it("counts deliveries apart from their outcomes", () => {
    const activity = new Activity(START);
    const held = (reason: "conflict" | "exhausted"): Notice => ({
      type: "held",
      ...FACTS,
      reason,
      detail: null,
      at: START,
    });
    activity.recordNotice({ type: "duplicate", ...FACTS, at: START });
    activity.recordNotice(held("conflict"));
    activity.recordNotice(held("exhausted"));
    activity.recordNotice({ type: "finished", ...FACTS, at: START });
    activity.recordNotice({
      type: "refused",
      flow: "payments",
      code: "ERR_SIGNATURE_INVALID",
      httpStatus: 401,
      why: "",
      address: null,
      fix: null,
      stack: null,
      at: START,
    });
    expect(activity.minutes(START, 1)).toEqual([
      { at: START - 30_000, deliveries: 3, finished: 1, retried: 0, held: 2, refused: 1 },
    ]);
  });

  it("has the last fifty decisions and troubles", () => {
    const activity = new Activity(START);
    for (let n = 0; n < 60; n++) {
      activity.recordNotice({ type: "warning", what: `warning ${n}`, fix: "", at: START + n });
    }
    expect(activity.entries).toHaveLength(50);
    expect(activity.entries[0]?.at).toBe(START + 59);
  });
});

describe("an open page", () => {
  it("is told that something changed, but not what has changed", async () => {
    const fixture = await consoleFixture();
    const page = await fixture.open();
    const stream = await fetch(`${page.url}?stream=1`);
    expect(stream.headers.get("content-type")).toContain("text/event-stream");
    expect(stream.headers.get("cache-control")).toContain("no-transform");
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    await fixture.callback({ referenceId: "order-1" });
    let read = "";
    while (!read.includes("data:")) read += (await reader?.read())?.value ?? "";
    expect(read).toBe(': open\n\ndata: "changed"\n\n');
    await reader?.cancel();
  });

  it("is not held open by a receiver that closes", async () => {
    const fixture = await consoleFixture();
    const page = await fixture.open();
    await fixture.receiver.close({ graceMs: 0 });
    expect((await page.get("?stream=1")).status).toBe(204);
  });
});
