import { AlertNotSent } from "@payhooks/core/alerts";
import { fakeClock } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { AlertUnanswered, sendFailureReason, sendInTime } from "../../src/alerts/channel.ts";

const MESSAGE = {
  id: "test:1",
  what: "test",
  incident: "test",
  kind: "test",
  severity: "info",
  summary: "",
  advice: "",
  from: "shop",
  since: 0,
  at: 0,
} as const;

it("a message without an answer fails with an error of its own, because somebody may have got it", async () => {
  const clock = fakeClock();
  const channel = { name: "hangs", send: () => new Promise<never>(() => {}) };
  const stopping = new AbortController();
  const send = (): Promise<unknown> =>
    sendInTime(channel, MESSAGE, clock, stopping.signal).catch((error: unknown) => error);
  const late = send();
  await clock.advance("5s");
  const stopped = send();
  stopping.abort();
  for (const [sent, reason] of [
    [late, "no answer within 5 s"],
    [stopped, "the sender was stopped"],
  ] as const) {
    const error = await sent;
    expect(error).toBeInstanceOf(AlertUnanswered);
    expect(error).not.toBeInstanceOf(AlertNotSent);
    expect(String(error)).toBe(`AlertUnanswered: ${reason}`);
    expect(sendFailureReason(error)).toBe(reason);
  }
});
