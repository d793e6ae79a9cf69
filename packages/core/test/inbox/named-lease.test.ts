import { describe, expect, it } from "vitest";
import type { SharedTexts, TextChange } from "../../src/inbox/contract/texts.ts";
import { takeLease, viewLease } from "../../src/inbox/named-lease.ts";

const MINUTE_MS = 60_000;

/** The texts of an inbox whose clock can be set. */
class TextsUnderTest implements SharedTexts {
  now = Date.UTC(2026, 2, 1);
  #text: string | null = null;

  async change<T>(_name: string, compute: TextChange<T>): Promise<T> {
    const { answer, text } = compute(this.#text, this.now);
    this.#text = text ?? this.#text;
    return answer;
  }

  async read(): Promise<string | null> {
    return this.#text;
  }
}

async function taken() {
  const texts = new TextsUnderTest();
  const lease = (await takeLease(texts, "report", MINUTE_MS, "one")) ?? expect.fail("it is taken");
  const other = () => takeLease(texts, "report", MINUTE_MS, "two");
  const isTaken = async () => (await viewLease(texts, "report"))?.isTaken;
  return { texts, lease, other, isTaken };
}

describe("a named lease, when the store's clock is set back", () => {
  it.each([1, 4_000, 3_600_000])("by %i ms, stays with its holder", async (backMs) => {
    const { texts, lease, other, isTaken } = await taken();
    texts.now -= backMs;
    expect(await isTaken()).toBe(true);
    expect(await other()).toBeNull();
    expect(await lease.renew("note")).toBe(true);
    texts.now += MINUTE_MS;
    expect((await other())?.note).toBe("note");
  });

  it("ends after its length, if its holder has died", async () => {
    const { texts, other, isTaken } = await taken();
    texts.now -= 3_600_000;
    expect(await other()).toBeNull();
    texts.now += MINUTE_MS - 1;
    expect(await isTaken()).toBe(true);
    texts.now += 1;
    expect(await isTaken()).toBe(false);
    expect(await other()).not.toBeNull();
  });

  it("is free at once if it was ended", async () => {
    const { texts, lease, other, isTaken } = await taken();
    await lease.end("done");
    texts.now -= 1_000;
    expect(await isTaken()).toBe(false);
    expect((await other())?.note).toBe("done");
  });
});

describe("the length of a named lease", () => {
  const MAX_LENGTH_MS = 30 * 24 * 60 * MINUTE_MS;

  it("is 30 days at most, because its text is deleted then", async () => {
    const texts = new TextsUnderTest();
    await expect(takeLease(texts, "report", MAX_LENGTH_MS + 1, "one")).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining("more than 30 days"),
    });
    expect(await texts.read()).toBeNull();
    expect(await takeLease(texts, "report", MAX_LENGTH_MS, "one")).not.toBeNull();
  });
});
