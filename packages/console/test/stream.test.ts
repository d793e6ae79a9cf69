import type { AnyReceiver } from "@payhooks/core";
import type { OpenStream } from "@payhooks/pages";
import type { Context } from "hono";
import { expect, it, onTestFinished, vi } from "vitest";
import { Activity } from "../src/activity/activity.ts";
import { changeStream } from "../src/activity/stream.ts";

type Begin = (stream: OpenStream) => () => void;

let begin: Begin = () => () => {};

vi.mock("@payhooks/pages", () => ({
  eventStream: (_: Context, given: Begin) => {
    begin = given;
    return new Response();
  },
}));

it("a page that reads slowly is told once more of what has changed while it was told", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const activity = new Activity(0);
  const change = (): void => activity.add({ type: "warning", what: "something", fix: "", at: 0 });
  changeStream({} as Context, { live: () => ({ ok: true }) } as AnyReceiver, activity);
  const sent: (() => void)[] = [];
  const end = begin({ send: () => new Promise((resolve) => sent.push(resolve)), end: () => {} });
  change();
  await vi.advanceTimersByTimeAsync(500);
  expect(sent).toHaveLength(1);
  for (let n = 0; n < 3; n++) change();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toHaveLength(1);
  sent[0]?.();
  await vi.advanceTimersByTimeAsync(500);
  expect(sent).toHaveLength(2);
  change();
  end();
  sent[1]?.();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sent).toHaveLength(2);
});
