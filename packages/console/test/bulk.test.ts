import { resplitPair } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { type ConsoleFixture, consoleFixture, keys } from "./support/console-fixture.ts";
import { MOUNTS } from "./support/mounts.ts";

/** One transaction that was credited with 10.50 and is then said to be 9999.00, beside a payment whose handler failed. */
async function contradicted(): Promise<ConsoleFixture> {
  const fixture = await consoleFixture();
  await fixture.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
  await fixture.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "9999.000000" });
  fixture.words = "the bank is away";
  await fixture.callback({ payTxnId: "pay-2", referenceId: "order-2", amount: "20.000000" });
  fixture.words = null;
  fixture.credited.splice(0);
  return fixture;
}

/** The boxes of a preview, by reason, and whether each is ticked. */
const ticksIn = (html: string): Readonly<Record<string, boolean>> =>
  Object.fromEntries(
    [...html.matchAll(/<input type="checkbox" name="reason" value="([^"]*)"[^>]*?(checked)?>/g)].map(
      ([, reason, ticked]) => [reason, ticked !== undefined],
    ),
  );

describe.each(Object.keys(MOUNTS))("a preview on %s", (on) => {
  it("has everything by reason, and includes no question of truth by itself", async () => {
    const fixture = await contradicted();
    const page = await fixture.open({ on });
    const { html, events, gone, more } = await page.preview({ query: "?state=held" });
    expect(ticksIn(html)).toEqual({ mismatch: false, exhausted: true });
    expect(html).toMatch(
      /DEPOSIT[\s\S]*SUCCESS[\s\S]*9999\.000000[\s\S]*The same transaction: [\s\S]*10\.500000[\s\S]*done/,
    );
    expect(html.match(/A second event of this transaction will run as well\./g)).toHaveLength(1);
    expect(html).toMatch(/Runs every handler that has not finished, <bdi>deposit<\/bdi> among them\./);
    expect([events.length, gone, more]).toEqual([2, 0, false]);
    expect((await fixture.receiver.events.counts()).held).toBe(2);
  });
});

describe("a preview", () => {
  it("of one event includes it, and shows the event that it contradicts", async () => {
    const fixture = await contradicted();
    const page = await fixture.open();
    const all = await page.preview({ query: "?state=held&reason=mismatch" });
    const eventIds = all.events.map(({ eventId }) => eventId);
    expect(eventIds).toHaveLength(1);
    const { html } = await page.preview({ eventIds });
    expect(ticksIn(html)).toEqual({ mismatch: true });
    expect(html).toContain("A second event of this transaction will run as well.");
    // The event's own page says it before anybody thinks of a replay.
    const life = (await page.get(`?event=${eventIds[0]}`)).text;
    expect(life).toContain("A replay runs a second one.");
    expect(life).toMatch(/The same transaction<\/h2>[\s\S]*10\.500000[\s\S]*done/);
    const dropped = await page.preview({ eventIds }, "discard");
    expect(dropped.html).not.toContain("will run as well");
    expect(dropped.html).toContain("10.500000");
  });

  it("of a reference that was used twice shows the payment that has succeeded with it", async () => {
    const fixture = await consoleFixture({ oneSuccessPerReference: true });
    await fixture.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
    await fixture.callback({ payTxnId: "pay-2", referenceId: "order-1", amount: "11.000000" });
    const page = await fixture.open();
    const { html, events } = await page.preview({ query: "" });
    expect(events).toMatchObject([{ reason: "reference-reused" }]);
    const words = html.replace(/<[^>]*>/g, "");
    expect(words).toMatch(
      /11\.000000[\s\S]*Another transaction with this reference: pay-1 · DEPOSIT · SUCCESS · 10\.500000 · done[\s\S]*A second payment with this reference will run\./,
    );
    expect((await page.get(`?event=${events[0]?.eventId}`)).text.replace(/<[^>]*>/g, "")).toContain(
      "Another transaction with this reference: pay-1",
    );
  });

  it("follows the filter of the list, and counts what somebody else has decided meanwhile", async () => {
    const fixture = await contradicted();
    const page = await fixture.open();
    const reasons = async (query: string) =>
      (await page.preview({ query })).events.map(({ reason }) => reason);
    expect(await reasons("?state=held&reason=exhausted")).toEqual(["exhausted"]);
    expect(await reasons("?state=held&name=WITHDRAWAL")).toEqual([]);
    expect(await reasons("?state=held&flow=connect")).toEqual([]);
    expect(await reasons("?state=held&tenant=other")).toEqual([]);
    const { events } = await page.preview({ query: "" });
    const eventIds = events.map(({ eventId }) => eventId);
    await fixture.receiver.events.discard(eventIds[0] ?? "", { by: "somebody else", note: "n" });
    expect(await page.preview({ eventIds: [...eventIds, ...eventIds] })).toMatchObject({
      gone: 1,
      events: [{ eventId: eventIds[1] }],
    });
  });

  it("has the oldest 500 at most, and says that there are more", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    for (let n = 0; n < 501; n++) await fixture.callback({ referenceId: `order-${n}` });
    const page = await fixture.open();
    const { events, html, more } = await page.preview({ query: "?state=held" });
    expect([events.length, more]).toEqual([500, true]);
    expect(html).toContain("order-0<");
    expect(html).not.toContain("order-500<");
  });

  it("warns of two outcomes of one transaction, of which only the first is replayed", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    await fixture.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
    await fixture.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "9999.000000" });
    fixture.words = null;
    const page = await fixture.open();
    const { html, events } = await page.preview({ query: "?state=held" });
    expect(html.match(/Is left alone, once the other event/g)).toHaveLength(1);
    const statuses: number[] = [];
    for (const one of events)
      statuses.push((await page.decide({ action: "replay", ...one, note: "n" })).status);
    expect(statuses).toEqual([200, 409]);
  });

  it("needs the right to decide, and reveals nothing otherwise", async () => {
    const fixture = await contradicted();
    const page = await fixture.open({ can: ["view", "discard"] });
    const refused = await page.decide({ action: "preview", decision: "replay", query: "?state=held" });
    expect([refused.status, refused.text]).toEqual([403, expect.not.stringContaining("order-1")]);
    expect((await page.preview({ query: "" }, "discard")).events).toHaveLength(2);
  });

  it("shows no amount where amounts are redacted", async () => {
    const fixture = await contradicted();
    const page = await fixture.open({ redact: ["amount"] });
    const { html, events } = await page.preview({ query: "" });
    const pages = await Promise.all(events.map(({ eventId }) => page.get(`?event=${eventId}`)));
    for (const text of [html, ...pages.map((one) => one.text)]) expect(text).not.toMatch(/9999|10\.5|20\.0/);
  });
});

describe("the outcome of a replay", () => {
  it("is shown as it is: finished, held again, or not finished yet", async () => {
    const fixture = await contradicted();
    await fixture.deliver(resplitPair("order-3", keys.privateKey).forged);
    const page = await fixture.open();
    const { events } = await page.preview({ query: "" });
    fixture.words = "the bank is away again";
    for (const one of events) {
      expect((await page.decide({ action: "replay", ...one, note: "n" })).status).toBe(200);
    }
    const outcomes = async () => {
      const eventIds = events.map(({ eventId }) => eventId);
      const { states } = JSON.parse((await page.decide({ action: "outcomes", eventIds })).text);
      return Object.values(states);
    };
    await expect.poll(outcomes).toEqual(["held", "held", "held"]);
    fixture.words = null;
    const again = await page.preview({ query: "?reason=exhausted" });
    for (const one of again.events) await page.decide({ action: "replay", ...one, note: "n" });
    await expect.poll(async () => (await outcomes()).sort()).toEqual(["done", "done", "held"]);
  });
});
