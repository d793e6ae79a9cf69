import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { escapeInvisible, untrustedText } from "../src/views/text.ts";
import { consoleFixture, heldId, keys } from "./support/console-fixture.ts";

const HOSTILE: readonly (readonly [string, string])[] = [
  ["a script", `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`],
  ["an attribute's end", `' autofocus onfocus=alert(1) x='`],
  ["a template", "$" + "{alert(1)}{{7*7}}<!-- -->"],
  ["marks that turn the direction", "order-\u202egnp.exe\u2066\u200f\u061c"],
  ["characters that are not seen", "a\u200bb\ufeffc\u00add\u2060"],
  ["very long", "x".repeat(4_000)],
  ["emoji", "🧾👩‍👩‍👧 ላኪ 汉字 é"],
  ["control characters", "a\u0007b\u001b[31mc\r\nd"],
  ["NUL", "a\0b"],
];

/** Characters that may be nowhere on a page, since they cannot be seen there. */
const UNSEEN: ReadonlySet<string> = new Set("\u202e\u2066\u200f\u061c\u200b\ufeff\u00ad\u2060\u0007\u001b\0");

/** The tags of a page without the texts of others: tags that are not the page's own would be new ones. */
const tagsIn = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(/<(script|img|iframe|object)\b[^>]*>/g)].map(([tag]) => tag));

describe("text that others write", () => {
  it.each(HOSTILE)("is shown as text everywhere: %s", async (_what, value) => {
    const clean = await consoleFixture();
    clean.words = "w";
    await clean.callback({ referenceId: "r", message: "m" });
    const page = await clean.open();
    const usual = tagsIn(
      (await page.get(`?event=${await heldId(clean.receiver)}`)).text + (await page.get()).text,
    );

    const fixture = await consoleFixture();
    fixture.words = value;
    const fields = callbackFields({ referenceId: value, message: value, providerTxId: value });
    await fixture.deliver(signPaymentCallback(fields, keys.privateKey));
    const eventId = await heldId(fixture.receiver);
    const hostile = await fixture.open({ authorize: () => ({ by: value, can: ["view", "replay"] }) });
    const queries = [
      "",
      `?event=${eventId}`,
      `?search=${encodeURIComponent(value.slice(0, 200))}`,
      `?name=${encodeURIComponent(value.slice(0, 200))}&tenant=${encodeURIComponent(value.slice(0, 200))}&state=${encodeURIComponent(value.slice(0, 200))}`,
    ];
    const { html, events } = await hostile.preview({ eventIds: [eventId] });
    for (const tag of tagsIn(html)) expect([...usual]).toContain(tag);
    if (/["'<>]/.test(value)) expect(html).not.toContain(value);
    expect([...html].filter((character) => UNSEEN.has(character))).toEqual([]);
    expect((await hostile.decide({ action: "replay", ...events[0], note: value.slice(0, 400) })).status).toBe(
      200,
    );
    for (const query of queries) {
      const { status, text } = await hostile.get(query);
      expect(status).toBe(query.includes("&state=") ? 400 : 200);
      for (const tag of tagsIn(text)) expect([...usual]).toContain(tag);
      if (/["'<>]/.test(value)) expect(text).not.toContain(value);
      // The form keeps what was typed into it.
      const besideTheForm = text.replace(/<input[^>]*>/g, "");
      expect([...besideTheForm].filter((character) => UNSEEN.has(character))).toEqual([]);
    }
  });

  it("cannot add parts to an address", async () => {
    const { open } = await consoleFixture();
    const page = await open();
    const value = `a&event=${"f".repeat(48)}&asset=console.js#x`;
    const { text } = await page.get(`?tenant=${encodeURIComponent(value)}`);
    const addresses = [...text.matchAll(/href="(\?[^"]*)"/g)].map(([, one = ""]) =>
      one.replaceAll("&amp;", "&"),
    );
    const lists = addresses.map((one) => new URLSearchParams(one)).filter((one) => one.has("tenant"));
    expect(lists.length).toBeGreaterThan(3);
    for (const one of lists) {
      expect(one.get("tenant")).toBe(value);
      expect([one.has("event"), one.has("asset")]).toEqual([false, false]);
    }
  });

  it("does no harm in the query of an address", async () => {
    const { open } = await consoleFixture();
    const page = await open();
    for (const query of [
      "?event=../../x",
      "?cursor=%00",
      "?hours=NaN",
      "?state[]=held",
      `?search=${"%F0%9F"}`,
    ]) {
      expect([query, (await page.get(query)).status]).toEqual([query, expect.toBeOneOf([200, 400])]);
    }
    expect((await page.get("?asset=../package.json")).status).toBe(404);
    expect((await page.get("?asset=constructor")).status).toBe(404);
    const unknown = await page.get(`?event=${"0".repeat(48)}`);
    expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining("Event not found")]);
  });
});

describe("a text that somebody else wrote", () => {
  it.each([
    ["a\u202eb", "aU+202Eb"],
    ["a\0b", "aU+0000b"],
    ["\ud800x", "U+D800x"],
    ["👩‍👩‍👧", "👩‍👩‍👧"],
    ["a\u200db", "aU+200Db"],
  ])("%j is shown as %j", (text, expected) => {
    expect(escapeInvisible(text)).toBe(expected);
    expect(String(untrustedText(text)).replace(/<[^>]*>/g, "")).toBe(expected);
  });
});
