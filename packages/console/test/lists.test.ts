import { describe, expect, it } from "vitest";
import { consoleFixture, heldId, type Page } from "./support/console-fixture.ts";

const namesIn = ({ text }: { readonly text: string }): readonly string[] =>
  [...text.matchAll(/<span class="name"><bdi>([^<]*)<\/bdi>/g)].map(([, name = ""]) => name);

/** The addresses of all pages, by following the links. */
async function allNames(page: Page, query: string): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  for (let next: string | undefined = query; next !== undefined; ) {
    const answer = await page.get(next);
    pages.push(namesIn(answer));
    next = /id="next-page" href="([^"]*)"/.exec(answer.text)?.[1]?.replaceAll("&amp;", "&");
  }
  return pages;
}

describe("lists", () => {
  it("have everything once, page by page, the newest first", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    for (let n = 100; n < 220; n++) await fixture.callback({ referenceId: `order-${n}` });
    const page = await fixture.open();
    const pages = await allNames(page, "?state=held");
    expect(pages.map((names) => names.length).filter((length) => length > 0)).toEqual([50, 50, 20]);
    const inOrder = Array.from({ length: 120 }, (_, n) => `order-${219 - n}`);
    expect(pages.flat()).toEqual(inOrder);
  });

  it("show what the filter lets pass", async () => {
    const fixture = await consoleFixture();
    await fixture.callback({ referenceId: "order-1" });
    fixture.words = "the bank is away";
    await fixture.callback({ referenceId: "order-2" });
    await fixture.callback({ referenceId: "order-3", event: "WITHDRAWAL" });
    const page = await fixture.open();
    expect(namesIn(await page.get("?state=held"))).toEqual(["order-2"]);
    expect(namesIn(await page.get("?state=held&reason=exhausted"))).toEqual(["order-2"]);
    expect(namesIn(await page.get("?state=held&reason=conflict"))).toEqual([]);
    expect(namesIn(await page.get("?state=held&flow=connect"))).toEqual([]);
    expect(namesIn(await page.get("?state=held&name=DEPOSIT"))).toEqual(["order-2"]);
    expect(namesIn(await page.get("?state=finished"))).toHaveLength(2);
  });

  it("are narrowed by amount and by handler, and refuse a value that is not an amount", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    for (const [referenceId, amount] of [
      ["order-1", "9.99"],
      ["order-2", "10.00"],
      ["order-3", "2000.00"],
    ]) {
      await fixture.callback({ referenceId, amount });
    }
    const page = await fixture.open();
    expect(namesIn(await page.get("?state=held&min=10&max=1999.99"))).toEqual(["order-2"]);
    expect(namesIn(await page.get("?state=held&max=10"))).toEqual(["order-2", "order-1"]);
    expect(namesIn(await page.get("?state=held&handler=deposit"))).toHaveLength(3);
    const none = await page.get("?state=held&handler=ledger");
    expect([namesIn(none), none.text]).toEqual([
      [],
      expect.stringContaining("No event that matches is held."),
    ]);
    const wrong = await page.get("?state=held&min=ten");
    expect([wrong.status, namesIn(wrong)]).toEqual([400, []]);
    expect(wrong.text).toMatch(/role="alert"\s*>[^<]*The min of an amount/);
  });

  it("show the amount of an event, how often it was tried and its last error, unless they are redacted", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    await fixture.callback({ referenceId: "order-1", amount: "17.50" });
    const { text } = await (await fixture.open()).get("?state=held");
    expect(text).toContain("17.50");
    expect(text).toMatch(/tried (?:once|\d+ times): [^<]*the bank is away/);
    const hidden = await (await fixture.open({ redact: ["amount"] })).get("?state=held");
    expect(hidden.text).not.toContain("17.50");
    expect(hidden.text).not.toContain("the bank is away");
    expect(hidden.text).toMatch(/tried (?:once|\d+ times)</);
  });

  it("are downloaded whole, as CSV and as JSON Lines, without redacted fields", async () => {
    const fixture = await consoleFixture();
    fixture.words = '=the bank, "ours", is away';
    for (let n = 100; n < 220; n++) await fixture.callback({ referenceId: `order-${n}`, amount: `${n}.50` });
    const page = await fixture.open();
    expect((await page.get("?state=held&min=218")).text).toContain("&amp;min=218&amp;download=csv");
    const csv = await page.get("?state=held&min=218&download=csv");
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(csv.headers.get("content-disposition")).toMatch(
      /^attachment; filename="payhooks-held-\d{4}-\d\d-\d\d\.csv"$/,
    );
    expect(csv.headers.get("cache-control")).toContain("no-store");
    const lines = csv.text.split("\r\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^eventId,state,reason,flow,/);
    expect(lines[1]).toMatch(/,DEPOSIT,SUCCESS,218\.500000,order-218,[^,]+,\d{4}-/);
    expect(lines[1]).toContain(`the bank, ""ours"", is away`);
    const rows = (await page.get("?state=held&download=jsonl")).text.trim().split("\n");
    expect(rows.map((row) => (JSON.parse(row) as { referenceId: string }).referenceId)).toEqual(
      Array.from({ length: 120 }, (_, n) => `order-${n + 100}`),
    );
    const hidden = await (await fixture.open({ redact: ["amount"] })).get("?state=held&download=jsonl");
    expect(JSON.parse(hidden.text.split("\n")[0] ?? "")).toMatchObject({ amount: "•••", lastError: null });
    const wrong = await page.get("?state=held&min=ten&download=csv");
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("The min of an amount")]);
    const refused = await (await fixture.open({ can: [] })).get("?state=held&download=csv");
    expect(refused.status).toBe(403);
  });

  it("find an event by its reference, its transaction and its eventId", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    await fixture.callback({ referenceId: "order-2", payTxnId: "pay-2" });
    const page = await fixture.open();
    const eventId = await heldId(fixture.receiver);
    for (const text of ["order-2", "pay-2", eventId, " order-2 "]) {
      expect(namesIn(await page.get(`?search=${encodeURIComponent(text)}`))).toEqual(["order-2"]);
    }
    const nothing = await page.get("?search=order-3");
    expect([namesIn(nothing), nothing.text]).toEqual([[], expect.stringContaining("Nothing is known")]);
  });

  it("say why when the inbox does not answer, and show what this process knows", async () => {
    const fixture = await consoleFixture();
    const page = await fixture.open();
    const { status, text } = await page.get("?cursor=not-a-cursor");
    expect(status).toBe(400);
    expect(text).toMatch(/role="alert"\s*>[^<]*cursor/);
    expect(text).toContain("Deliveries and outcomes");
  });
});
