import { describe, expect, it } from "vitest";
import { type ConsoleFixture, consoleFixture } from "./support/console-fixture.ts";

interface Shipping extends ConsoleFixture {
  /** The handlers that were called, with the reference and the id of their effects. */
  readonly calls: { readonly handler: string; readonly referenceId: string; readonly effectId: string }[];
}

/** Two deposits are done and kept, with two handlers, after a PENDING that the first of them has replaced. */
async function ended(
  keep: { readonly signedTextMs: number } | null = { signedTextMs: 86_400_000 },
): Promise<Shipping> {
  const calls: Shipping["calls"] = [];
  const fixture = await consoleFixture({ keep: keep ?? undefined }, 1, (receiver) =>
    receiver.onDeposit(
      ({ referenceId }, { effectId }) => void calls.push({ handler: "ship", referenceId, effectId }),
      { name: "ship" },
    ),
  );
  await fixture.callback({ referenceId: "order-1", payTxnId: "pay-1", status: "PENDING", amount: "10" });
  await fixture.callback({ referenceId: "order-1", payTxnId: "pay-1", amount: "10" });
  await fixture.callback({ referenceId: "order-2", payTxnId: "pay-2", amount: "20" });
  fixture.credited.splice(0);
  calls.splice(0);
  return { ...fixture, calls };
}

const wordsOf = (html: string): string => html.replace(/<[^>]*>/g, "").replace(/\s+/g, " ");

describe("events that have ended", () => {
  it("are offered to run again if they were kept, to users who may replay", async () => {
    const fixture = await ended();
    const { text } = await (await fixture.open()).get("?state=finished");
    expect(text.match(/class="pick" id="pick-/g)).toHaveLength(3);
    expect(text).toContain('data-decide="replay"');
    expect(text).not.toContain('data-decide="discard"');
    const viewer = await fixture.open({ can: ["view", "discard"] });
    expect((await viewer.get("?state=finished")).text).not.toContain("data-decide");
    const forgetful = await (await ended(null)).open();
    expect((await forgetful.get("?state=finished")).text).not.toContain("data-decide");
    const { html, events } = await forgetful.preview({ query: "?state=finished" });
    expect([events, wordsOf(html)]).toEqual([
      [],
      expect.stringContaining("Left alone: 3 whose signed text was not kept (option keep)."),
    ]);
  });

  it("are shown with the handlers that will run, what is skipped, and what is left alone", async () => {
    const fixture = await ended();
    const page = await fixture.open();
    const { html, events, gone, more } = await page.preview({ query: "?state=finished" });
    expect(events).toMatchObject([
      { reason: "done", handlers: ["deposit", "ship"] },
      { reason: "done", handlers: ["deposit", "ship"] },
    ]);
    expect([gone, more]).toEqual([0, false]);
    const words = wordsOf(html);
    expect(words).toMatch(/done 2 .*It has ended, and runs again\./);
    expect(words).toContain("Runs deposit, ship again.");
    expect(words).toMatch(/Handlers that run again deposit 2\s?ship 2 Effects that are there are skipped/);
    expect(words).toContain("Left alone: 1 that a later event has replaced.");
    expect((await page.preview({ query: "?state=finished&min=15" })).events).toHaveLength(1);
    expect(fixture.calls).toEqual([]);
  });

  it("run again as they were seen, once", async () => {
    const fixture = await ended();
    const page = await fixture.open();
    const { events } = await page.preview({ query: "?state=finished&min=15" });
    const [event] = events;
    const decision = { action: "replay", ...event, handlers: undefined, note: "the ledger had lost it" };
    expect((await page.decide(decision)).status).toBe(200);
    await expect.poll(() => fixture.credited).toEqual(["order-2"]);
    await expect.poll(() => fixture.calls).toHaveLength(1);
    await expect
      .poll(async () => (await fixture.receiver.events.get(event?.eventId ?? ""))?.state)
      .toBe("done");
    const second = await page.decide(decision);
    expect([second.status, JSON.parse(second.text)]).toEqual([
      409,
      expect.objectContaining({ code: "ERR_EVENT_CHANGED" }),
    ]);
    const outcomes = await page.decide({ action: "outcomes", eventIds: [event?.eventId] });
    expect(JSON.parse(outcomes.text).states).toEqual({ [event?.eventId ?? ""]: "done" });
    expect((await fixture.receiver.events.get(event?.eventId ?? ""))?.history).toContainEqual(
      expect.objectContaining({ by: "marta", note: "the ledger had lost it" }),
    );
    expect(fixture.credited).toEqual(["order-2"]);
  });

  it("run the handlers alone that were ticked, and their effects happen once more if that was ticked too", async () => {
    const fixture = await ended();
    const page = await fixture.open();
    const rerun = async (how: object): Promise<string> => {
      const { events } = await page.preview({ query: "?state=finished&min=15" });
      const before = fixture.calls.length;
      expect(
        (await page.decide({ action: "replay", note: "n", ...events[0], handlers: ["ship"], ...how })).status,
      ).toBe(200);
      await expect.poll(() => fixture.calls.length).toBe(before + 1);
      await expect
        .poll(async () => (await fixture.receiver.events.get(events[0]?.eventId ?? ""))?.state)
        .toBe("done");
      return fixture.calls.at(-1)?.effectId ?? "";
    };
    const [first, second] = [await rerun({}), await rerun({})];
    expect(second).toBe(first);
    expect(await rerun({ repeatEffects: true })).not.toBe(first);
    expect(fixture.credited).toEqual([]);
  });

  it.each([
    ["a handler that the event does not have", { handlers: ["ship", "ledger"] }, 'no handler \\"ledger\\"'],
    ["a handler whose name cannot be seen", { handlers: ["sh\u202eip"] }, "U+202E"],
    ["no list of handlers", { handlers: "ship" }, "must be a list of names"],
    ["an empty list of handlers", { handlers: [], repeatEffects: true }, "must be a list of names"],
    [
      "effects once more of no named handler",
      { handlers: undefined, repeatEffects: true },
      "Name the handlers",
    ],
  ])("are not run again with %s", async (_what, how, says) => {
    const fixture = await ended();
    const page = await fixture.open();
    const { events } = await page.preview({ query: "?state=finished&min=15" });
    const { status, text } = await page.decide({ action: "replay", note: "n", ...events[0], ...how });
    expect([status, text]).toEqual([400, expect.stringContaining(says)]);
    expect(text).toContain('"code":"ERR_OPTION_INVALID"');
    expect(text).not.toContain("\u202e");
    expect((await fixture.receiver.events.get(events[0]?.eventId ?? ""))?.replays).toBe(0);
  });
});
