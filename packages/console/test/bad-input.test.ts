import { describe, expect, it } from "vitest";
import { type ConsoleFixture, consoleFixture } from "./support/console-fixture.ts";

/** One event is held, one waits for another attempt, and one is done. */
async function fixtureWithEvents(): Promise<ConsoleFixture> {
  const fixture = await consoleFixture({}, 2);
  await fixture.callback({ referenceId: "order-done", amount: "1" });
  fixture.words = "the bank is away";
  await fixture.callback({ referenceId: "order-retrying", amount: "2" });
  return fixture;
}

/** Values that cannot be right, by what the answer says of them. */
const WRONG: readonly (readonly [query: string, says: string])[] = [
  ["min=ten", 'The min of an amount is "ten".'],
  ["max=-1", 'The max of an amount is "-1".'],
  ["min=2&max=1", "The min of an amount is above its max."],
  ["min=1%E2%80%AE0", "The min of an amount is"],
  ["handler=sh%20ip", 'The handler of events.list is "sh ip"'],
  ["reason=exausted", 'The reason "exausted" is unknown.'],
  ["flow=no%20flow", 'The flow "no flow" is unknown.'],
  ["event=..%2Fx", 'The event "../x" is unknown.'],
];

const GONE = ["state=gone", 'The state "gone" is unknown.'] as const;

/** Previews that cannot be right, as the decision, the query, and what the answer says. */
const PREVIEWS: readonly (readonly [decision: string, query: string, says: string])[] = [
  ...WRONG.flatMap(([query, says]) => [
    ["replay", `?state=held&${query}`, says] as const,
    ["replay", `?state=finished&${query}`, says] as const,
    ["discard", `?state=held&${query}`, says] as const,
    ["retry", `?state=retrying&${query}`, says] as const,
  ]),
  ["replay", "?state=gone", GONE[1]],
  ["replay", "?state=running", "A replay cannot be about a list of events that are running."],
  ["discard", "?state=finished", "A discard cannot be about a list of events that are finished."],
  ["discard", "?state=retrying", "A discard cannot be about a list of events that are retrying."],
  ["retry", "?state=held", "A retry cannot be about a list of events that are held."],
  ["replay", "?search=order-1", "A replay cannot be about a list of the results of a search."],
];

/** What JSON has of an error, in the characters that a person sees. */
function toldIn(text: string): { readonly code: string; readonly message: string } {
  expect(text).not.toMatch(/\u202e/);
  return JSON.parse(text) as { code: string; message: string };
}

describe("a value that cannot be right", () => {
  it.each([...WRONG, GONE])(
    "is refused by the page, its updates and its downloads: %s",
    async (wrong, says) => {
      const page = await (await fixtureWithEvents()).open();
      const whole = await page.get(`?${wrong}`);
      expect(whole.status).toBe(400);
      const words = whole.text.replaceAll("&quot;", '"').replaceAll("&#39;", "'");
      expect(words).toContain(says);
      expect(words).toContain("(ERR_OPTION_INVALID)");
      expect(words).not.toMatch(/order-retrying|The inbox did not answer|\u202e.*role="alert"/);
      const update = await page.get(`?${wrong}&part=regions`);
      expect(update.status).toBe(400);
      expect((JSON.parse(update.text) as { problem: string }).problem).toContain(says);
      const file = await page.get(`?${wrong}&download=csv`);
      expect([file.status, toldIn(file.text)]).toEqual([
        400,
        { ok: false, code: "ERR_OPTION_INVALID", message: expect.stringContaining(says) },
      ]);
    },
  );

  it.each(PREVIEWS)(
    "is refused by the preview of a %s, which is about nothing then: %s",
    async (decision, query, says) => {
      const page = await (await fixtureWithEvents()).open();
      const { status, text } = await page.decide({ action: "preview", decision, query });
      expect([status, toldIn(text)]).toEqual([
        400,
        { ok: false, code: "ERR_OPTION_INVALID", message: expect.stringContaining(says) },
      ]);
    },
  );

  it("is distinguished from an inbox that fails", async () => {
    const fixture = await fixtureWithEvents();
    const page = await fixture.open();
    await fixture.receiver.close({ graceMs: 0 });
    const preview = { action: "preview", decision: "replay" };
    const away = await page.decide({ ...preview, query: "?state=held" });
    expect([away.status, toldIn(away.text).code]).toEqual([503, expect.stringMatching(/^ERR_[A-Z_]+$/)]);
    expect((await page.get("?state=held&download=csv")).status).toBe(503);
    const wrong = await page.decide({ ...preview, query: "?state=held&min=ten" });
    expect([wrong.status, toldIn(wrong.text).code]).toEqual([400, "ERR_OPTION_INVALID"]);
  });
});
