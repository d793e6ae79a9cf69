import { randomUUID } from "node:crypto";
import {
  type AlertMessage,
  pagerDutyChannel,
  sendAlerts,
  slackChannel,
  testAlerts,
  webhookChannel,
} from "@payhooks/core/alerts";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { Incidents } from "../../src/alerts/incidents.ts";
import { settle } from "../../src/testing/clock.ts";
import { deliver, fleet, forge, type RecordingChannel, startChannel } from "./fleet.ts";

const CHANNEL_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const texts = ({ got }: RecordingChannel): readonly string[] =>
  got.map(({ body }) => (JSON.parse(body) as { text: string }).text);

describe("alerts that reach a person", () => {
  it("are one message when an outage of ten minutes begins, and one when it is over, with three processes", async () => {
    const [channel, pager] = [await startChannel(), await startChannel()];
    const shop = fleet();
    const to = () => [
      slackChannel({ url: channel.url }),
      pagerDutyChannel({ routingKey: "key-1", url: pager.url }),
    ];
    const processes = [await shop.start(to), await shop.start(to), await shop.start(to)];
    await shop.clock.advance("1m");
    expect(channel.got).toEqual([]);
    shop.isAway = true;
    await shop.clock.advance("1m");
    expect(texts(channel)).toEqual([
      expect.stringMatching(/^🔴 \*shop &lt;test&gt;\*, began: Nothing may get through: .*ECONNREFUSED/),
    ]);
    await shop.clock.advance("9m");
    shop.isAway = false;
    await shop.clock.advance("5m");
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟢"]);
    expect(pager.got.map((one) => one.json())).toMatchObject([
      { event_action: "trigger", dedup_key: "payhooks/shop <test>/stalled" },
      { event_action: "resolve", dedup_key: "payhooks/shop <test>/stalled" },
    ]);
    for (const { problems } of processes) {
      expect(problems).toEqual([expect.stringMatching(/^The inbox cannot be asked for incidents: /)]);
    }
  });

  it("come from another process, if the one that sends them for all dies in a long outage", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const to = () => [slackChannel({ url: channel.url })];
    const first = await shop.start(to);
    await shop.clock.advance("10s");
    await shop.start(to);
    await shop.clock.advance("10s");
    shop.isAway = true;
    await first.alerts.stop();
    await shop.clock.advance("14m");
    expect(channel.got).toEqual([]);
    await shop.clock.advance("3m");
    expect(texts(channel)).toHaveLength(1);
    shop.isAway = false;
    await shop.clock.advance("5m");
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟢"]);
  });

  it("report held events, again when there are more, and when there are none", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const one = await shop.start(() => [slackChannel({ url: channel.url })]);
    shop.rejects = true;
    await deliver(one, shop.clock);
    await shop.clock.advance("2m");
    expect(texts(channel)).toEqual([expect.stringContaining("1 event is held for a person: 1 rejected.")]);
    await deliver(one, shop.clock);
    await shop.clock.advance("10m");
    expect(channel.got).toHaveLength(1);
    await shop.clock.advance("10m");
    expect(texts(channel)[1]).toMatch(/still going on: 2 events are held/);
    const { events } = await one.receiver.events.list({ state: "held" });
    for (const { eventId } of events)
      await one.receiver.events.discard(eventId, { by: "amina", note: "test" });
    await shop.clock.advance("5m");
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟠", "🟢"]);
    await shop.clock.advance("1h");
    expect(channel.got).toHaveLength(3);
  });

  it("keep no lease while the inbox cannot be counted, and come once it can", async () => {
    const channel = await startChannel();
    const shop = fleet();
    shop.rejects = true;
    const one = await shop.start(() => [slackChannel({ url: channel.url })]);
    await deliver(one, shop.clock);
    shop.cannotCount = true;
    for (let minutes = 0; minutes < 5; minutes++) {
      await shop.clock.advance("65s");
      expect(await one.receiver.viewLease("payhooks-alerts")).toMatchObject({ isTaken: false });
    }
    expect(channel.got).toEqual([]);
    shop.cannotCount = false;
    await shop.clock.advance("2m");
    expect(texts(channel)).toEqual([expect.stringContaining("1 event is held for a person")]);
  });

  it("report an event that no process runs, and repeat it every four hours", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const one = await shop.start(() => [slackChannel({ url: channel.url })]);
    await shop.clock.advance("1m");
    one.receiver.pause();
    await deliver(one, shop.clock);
    await shop.clock.advance("4m");
    expect(channel.got).toEqual([]);
    await shop.clock.advance("2m");
    expect(texts(channel)).toEqual([
      expect.stringContaining("The oldest event that is due has waited for 5 min."),
    ]);
    await shop.clock.advance("4h");
    expect(texts(channel)).toHaveLength(2);
    one.receiver.resume();
    await shop.clock.advance("5m");
    expect(texts(channel).at(-1)).toMatch(/^🟢/);
  });

  it("report once a problem that two processes notice, whichever of them looks for all", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const to = () => [slackChannel({ url: channel.url })];
    const processes = [await shop.start(to), await shop.start(to)];
    await shop.clock.advance("1m");
    const forged = createTestKeys().privateKey;
    for (const process of processes.toReversed()) {
      for (let n = 0; n < 10; n++) await deliver(process, shop.clock, forged);
      await shop.clock.advance("1m");
    }
    expect(texts(channel)).toEqual([
      expect.stringContaining(
        "payments: 10 deliveries within 5 min failed with ERR_SIGNATURE_INVALID, and none was authentic.",
      ),
    ]);
    await shop.clock.advance("30m");
    expect(texts(channel).at(-1)).toMatch(/^🟢/);
    expect(channel.got).toHaveLength(2);
  });

  it("are not sent twice, and end, when the process that looked for all is gone", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const to = () => [slackChannel({ url: channel.url })];
    const first = await shop.start(to);
    shop.rejects = true;
    await deliver(first, shop.clock);
    await shop.clock.advance("1m");
    expect(channel.got).toHaveLength(1);
    const second = await shop.start(to);
    await first.alerts.stop();
    await shop.clock.advance("10m");
    expect(channel.got).toHaveLength(1);
    const { events } = await second.receiver.events.list({ state: "held" });
    for (const { eventId } of events)
      await second.receiver.events.discard(eventId, { by: "amina", note: "test" });
    await shop.clock.advance("5m");
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟢"]);
  });

  describe.each([
    ["half a minute", 30_000],
    ["two hours", 7_200_000],
    ["a year", 365 * 86_400_000],
  ])("of a process whose clock is %s ahead, and that is gone,", (_, aheadMs) => {
    it("do not keep another process from looking", async () => {
      const channel = await startChannel();
      const shop = fleet();
      const to = () => [slackChannel({ url: channel.url })];
      const wrong = await shop.start(to, undefined, aheadMs);
      await shop.clock.advance("1m");
      const right = await shop.start(to);
      await shop.clock.advance("10s");
      await wrong.alerts.stop();
      right.receiver.pause();
      wrong.receiver.pause();
      await deliver(right, shop.clock);
      await shop.clock.advance("7m");
      expect(texts(channel)).toEqual([expect.stringContaining("The oldest event that is due has waited")]);
    });

    it("are tried again by another process", async () => {
      const channel = await startChannel();
      channel.answer = { status: 503 };
      const shop = fleet();
      const to = () => [slackChannel({ url: channel.url })];
      const wrong = await shop.start(to, undefined, aheadMs);
      shop.rejects = true;
      await deliver(wrong, shop.clock);
      await shop.clock.advance("1m");
      await wrong.alerts.stop();
      channel.got.length = 0;
      channel.answer = { status: 200 };
      await shop.start(to);
      await shop.clock.advance("12m");
      expect(channel.got).toHaveLength(1);
    });
  });

  it("go on, and end, after a process whose clock was a year ahead", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const to = () => [slackChannel({ url: channel.url })];
    const wrong = await shop.start(to, undefined, 365 * 86_400_000);
    shop.rejects = true;
    await deliver(wrong, shop.clock);
    await shop.clock.advance("1m");
    expect(channel.got).toHaveLength(1);
    await wrong.alerts.stop();
    const right = await shop.start(to);
    await shop.clock.advance("4h");
    await shop.clock.advance("5m");
    expect(channel.got).toHaveLength(2);
    const { events } = await right.receiver.events.list({ state: "held" });
    for (const { eventId } of events)
      await right.receiver.events.discard(eventId, { by: "amina", note: "test" });
    await shop.clock.advance("5m");
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟠", "🟢"]);
  });

  it("of a cron job come although the job before it had a clock that was ahead", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const to = () => [slackChannel({ url: channel.url })];
    const job = async (aheadMs: number): Promise<void> => {
      const one = await shop.start(to, undefined, aheadMs);
      await one.alerts.check();
      await one.alerts.stop();
    };
    const first = await shop.start(to, undefined, 7_200_000);
    await first.alerts.check();
    await first.alerts.stop();
    shop.rejects = true;
    await deliver(first, shop.clock);
    await shop.clock.advance("2m");
    await job(0);
    expect(channel.got).toHaveLength(1);
  });

  it("come from one process, while another one's clock is ahead", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const to = () => [slackChannel({ url: channel.url })];
    const processes = [await shop.start(to, undefined, 7_200_000), await shop.start(to)];
    shop.rejects = true;
    for (const one of processes) await deliver(one, shop.clock);
    await shop.clock.advance("30m");
    expect(channel.got).toHaveLength(1);
  });

  it("are written after an outage, however many two processes have noticed apart", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const [near, far] = [
      Array.from({ length: 16 }, (_, n) => `near-${n}-of-the-banks`),
      Array.from({ length: 20 }, (_, n) => `far-${n}-of-the-banks`),
    ];
    shop.sources = [...near, ...far];
    const to = () =>
      Array.from({ length: 5 }, (_, n) =>
        webhookChannel({ name: `webhook-of-the-shop-${n}`, url: channel.url, secret: CHANNEL_SECRET }),
      );
    const cutOff = await shop.start(to);
    await shop.clock.advance("1m");
    const other = await shop.start(to);
    cutOff.isCutOff = true;
    await shop.clock.advance("3m");
    for (const source of near) await forge(other, source);
    for (const source of far) await forge(cutOff, source);
    await shop.clock.advance("5m");
    cutOff.isCutOff = false;
    await shop.clock.advance("3m");
    const view = await other.receiver.viewLease("payhooks-alerts");
    expect(JSON.parse(view?.note ?? "").all).toHaveLength(12);
    expect(cutOff.problems).toEqual([expect.stringContaining("ECONNREFUSED")]);
    // All of them are over in the end, for both.
    await shop.clock.advance("40m");
    expect(JSON.parse((await other.receiver.viewLease("payhooks-alerts"))?.note ?? "").all).toEqual([]);
    expect([...cutOff.problems, ...other.problems]).toHaveLength(1);
  });

  it("of lost data take the place of one that will be seen again, however many there are", () => {
    const now = Date.UTC(2026, 10, 28);
    const incidents = Incidents.fromNote("", now);
    const see = (kind: "probing" | "data-lost", name: string, isOnce: boolean): void =>
      incidents.observe({ incident: `${kind}:${name}`, kind, summary: name, level: 0, isOnce }, now);
    for (let n = 0; n < 20; n++) see("probing", String(n), false);
    for (const loss of ["missing", "replaced"]) see("data-lost", loss, true);
    see("probing", "20", false);
    const due = incidents.dueMessages(["slack"], "shop", now, 60_000).map(({ message }) => message.incident);
    expect(due).toHaveLength(12);
    expect(due.filter((incident) => incident.startsWith("data-lost"))).toEqual([
      "data-lost:missing",
      "data-lost:replaced",
    ]);
  });

  it("have room in the note of the lease with the longest texts, and even after all channels were renamed", () => {
    const now = Date.UTC(2026, 10, 28);
    const incidents = Incidents.fromNote("", now);
    incidents.markChecked(randomUUID(), now);
    const see = (): void => {
      for (let n = 0; n < 40; n++) {
        const incident = `refused:${"f".repeat(30)}${n}:${"C".repeat(30)}`;
        incidents.observe(
          { incident, kind: "refused", summary: '"'.repeat(300), level: 1e6, isOnce: false },
          now,
        );
      }
    };
    const send = (letter: string): void => {
      const channels = Array.from({ length: 5 }, (_, n) => `${letter.repeat(31)}${n}`);
      for (const one of incidents.dueMessages(channels, "shop", now, 60_000)) one.onFailed(true, 60_000);
    };
    see();
    send("a");
    expect(JSON.parse(incidents.note).all).toHaveLength(12);
    expect(incidents.note.length).toBeLessThanOrEqual(15_000);
    send("b");
    expect(JSON.parse(incidents.note).all.length).toBeGreaterThan(5);
    expect(incidents.note.length).toBeLessThanOrEqual(15_000);
  });

  it("are tried again with pauses, as the server asks for, and given up in the end", async () => {
    const [channel, pager] = [await startChannel(), await startChannel()];
    channel.answer = { status: 429, headers: { "retry-after": "120" } };
    pager.answer = { status: 503 };
    const shop = fleet();
    const one = await shop.start(() => [
      slackChannel({ url: channel.url }),
      pagerDutyChannel({ routingKey: "key-1", url: pager.url }),
    ]);
    shop.rejects = true;
    await deliver(one, shop.clock);
    await shop.clock.advance("90s");
    expect(channel.got).toHaveLength(1);
    expect(pager.got.length).toBeGreaterThan(1);
    channel.answer = { status: 200 };
    await shop.clock.advance("1h");
    expect(channel.got).toHaveLength(2);
    expect(pager.got).toHaveLength(8);
    expect(one.problems).toEqual([
      "pagerduty did not take a message about held, which is given up: HTTP 503.",
    ]);
  });

  it("are given up at once if the server refuses them, without a word of the address", async () => {
    const channel = await startChannel();
    channel.answer = { status: 404 };
    const shop = fleet();
    const one = await shop.start(() => [slackChannel({ url: channel.url })]);
    shop.rejects = true;
    await deliver(one, shop.clock);
    await shop.clock.advance("10m");
    expect(channel.got).toHaveLength(1);
    expect(one.problems).toEqual(["slack did not take a message about held, which is given up: HTTP 404."]);
  });

  it("have nothing of an event in them, and keep no delivery waiting", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const one = await shop.start(() => [
      {
        name: "hangs",
        send: (_, signal) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("late")))),
      },
      slackChannel({ url: channel.url }),
    ]);
    shop.rejects = true;
    await deliver(one, shop.clock);
    await expect.poll(async () => (await one.receiver.events.counts()).held).toBe(1);
    const { events } = await one.receiver.events.list({ state: "held" });
    const looking = one.alerts.check();
    await deliver(one, shop.clock);
    await expect.poll(() => channel.got.length).toBe(1);
    const { id, referenceId, eventId } = events[0] ?? {};
    for (const value of [id, referenceId, eventId, "no such order"]) {
      expect(channel.got[0]?.body).not.toContain(String(value));
    }
    await one.alerts.stop();
    await looking;
  });

  it("of a channel that never answers, and heeds no signal, hold up no other channel and no stop", async () => {
    const channel = await startChannel();
    const shop = fleet();
    const hangs = { name: "hangs", send: () => new Promise<never>(() => {}) };
    const one = await shop.start(() => [hangs, slackChannel({ url: channel.url })]);
    shop.rejects = true;
    await deliver(one, shop.clock);
    await shop.clock.advance("30m");
    expect(one.problems).toEqual([
      "hangs did not take a message about held, which is given up: no answer within 5 s.",
    ]);
    expect(channel.got).toHaveLength(1);
    const { events } = await one.receiver.events.list({ state: "held" });
    for (const { eventId } of events)
      await one.receiver.events.discard(eventId, { by: "amina", note: "test" });
    await shop.clock.advance("5m");
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟢"]);
    shop.rejects = true;
    await deliver(one, shop.clock);
    void one.alerts.check();
    await settle();
    await one.alerts.stop();
  });

  it("send a channel that does not answer in time nothing more in that look, and the rest later", async () => {
    const shop = fleet();
    const tried: string[] = [];
    let isWell = false;
    const hangs = {
      name: "hangs",
      send: ({ incident }: AlertMessage) => {
        tried.push(incident);
        return isWell ? Promise.resolve() : new Promise<never>(() => {});
      },
    };
    const one = await shop.start(() => [hangs]);
    await shop.clock.advance("1m");
    shop.rejects = true;
    const forged = createTestKeys().privateKey;
    // Two incidents at once: an event on hold, and deliveries that somebody else has signed.
    await deliver(one, shop.clock);
    for (let n = 0; n < 10; n++) await deliver(one, shop.clock, forged);
    await settle();
    let isOver = false;
    const looking = one.alerts.check().then(() => {
      isOver = true;
    });
    await shop.clock.advance("6s");
    expect([isOver, tried.length]).toEqual([true, 1]);
    await looking;
    isWell = true;
    await shop.clock.advance("2m");
    expect(new Set(tried)).toEqual(new Set(["held", "all-failing:payments"]));
    expect(tried).toHaveLength(3);
    expect(one.problems).toEqual([]);
  });

  it("go on if the callback for problems fails", async () => {
    const [channel, refusing] = [await startChannel(), await startChannel()];
    refusing.answer = { status: 404 };
    const shop = fleet();
    const channels = () => [
      slackChannel({ url: refusing.url, name: "refuses" }),
      slackChannel({ url: channel.url }),
    ];
    const one = await shop.start(channels, () => {
      throw new Error("the logger is broken");
    });
    shop.rejects = true;
    await deliver(one, shop.clock);
    await shop.clock.advance("10m");
    await deliver(one, shop.clock);
    await shop.clock.advance("20m");
    expect(one.problems[0]).toMatch(/^refuses did not take a message about held/);
    expect(texts(channel).map((text) => text.slice(0, 2))).toEqual(["🔴", "🟠"]);
  });

  it("need channels with names, and options that exist", async () => {
    const shop = fleet();
    const { receiver } = await shop.start(() => [slackChannel({ url: "https://hooks.example/a" })]);
    const refused = (options: object) => expect(() => sendAlerts(receiver, options as never));
    refused({ to: [] }).toThrow(expect.objectContaining({ code: "ERR_OPTION_INVALID" }));
    const two = [
      slackChannel({ url: "https://hooks.example/a" }),
      slackChannel({ url: "https://hooks.example/b" }),
    ];
    refused({ to: two }).toThrow(expect.objectContaining({ code: "ERR_OPTION_INVALID" }));
    refused({ to: two.slice(1), overdueMS: 1 }).toThrow('no option "overdueMS"');
    const eu = { routingKey: "key-1", URL: "https://events.eu.pagerduty.com/v2/enqueue" } as never;
    expect(() => pagerDutyChannel(eu)).toThrow('no option "URL"');
    const invalid = expect.objectContaining({ code: "ERR_OPTION_INVALID" });
    const send = async () => {};
    for (const channel of [
      { name: "pager" },
      { name: "pager", send: "now" },
      { send },
      { name: 5, send },
      null,
    ]) {
      refused({ to: [channel] }).toThrow(invalid);
      await expect(testAlerts([channel] as never)).rejects.toThrow(invalid);
    }
    refused({ to: two.slice(1), from: 5 }).toThrow(invalid);
    await expect(testAlerts(two.slice(1), 5 as never)).rejects.toThrow(invalid);
    refused({ to: two.slice(1), onProblem: "stderr" }).toThrow(invalid);
    expect(() => slackChannel({ address: "https://hooks.example/a" } as never)).toThrow(
      'no option "address"',
    );
    expect(() => webhookChannel({ url: "https://ops.example", key: "whsec_" } as never)).toThrow(
      'no option "key"',
    );
  });
});
