import { PayhooksError } from "@payhooks/core";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { HOSTILE } from "../../../test/support/hostile-values.ts";
import { consoleFixture, heldId } from "./support/console-fixture.ts";
import { MOUNTS } from "./support/mounts.ts";

const held = async () => {
  const fixture = await consoleFixture();
  fixture.words = "the bank is away";
  await fixture.callback({ referenceId: "order-7" });
  fixture.words = null;
  const eventId = await heldId(fixture.receiver);
  return { ...fixture, eventId, revision: (await fixture.receiver.events.get(eventId))?.revision };
};

describe.each(Object.keys(MOUNTS))("a decision on %s", (on) => {
  it("is made in the name that authorize gives, with its note", async () => {
    const { receiver, open, eventId, revision, credited } = await held();
    const page = await open({ on });
    const answer = await page.decide({
      action: "replay",
      eventId,
      revision,
      note: " the bank is back ",
      by: "somebody else",
    });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { ok: true }]);
    await expect.poll(() => credited).toEqual(["order-7"]);
    await expect
      .poll(async () => (await page.get()).text)
      .toMatch(/replayed[\s\S]*marta[\s\S]*the bank is back/);
    expect((await receiver.events.get(eventId))?.state).toBe("done");
  });

  it("is made when its body comes in chunks, and refused when they are too many", async () => {
    const { receiver, open, eventId, revision } = await held();
    const page = await open({ on });
    const inChunks = (note: string) =>
      new Blob([JSON.stringify({ action: "discard", eventId, revision, note })]).stream();
    expect((await page.decide(inChunks("n".repeat(70_000)))).status).toBe(413);
    expect((await receiver.events.get(eventId))?.state).toBe("held");
    expect((await page.decide(inChunks("paid by hand, ብር"))).status).toBe(200);
    expect((await receiver.events.get(eventId))?.history.at(-1)).toMatchObject({ note: "paid by hand, ብር" });
  });

  it("is made once: the second person is told so", async () => {
    const { receiver, open, eventId, revision } = await held();
    const page = await open({ on });
    const decision = { action: "discard", eventId, revision, note: "paid by hand" };
    expect((await page.decide(decision)).status).toBe(200);
    const second = await page.decide(decision);
    expect(second.status).toBe(404);
    expect(JSON.parse(second.text)).toMatchObject({
      ok: false,
      message: expect.stringContaining("no longer held"),
    });
    const life = await receiver.events.get(eventId);
    expect(life?.state).toBe("discarded");
    expect(life?.history.filter(({ by }) => by === "marta")).toHaveLength(1);
  });
});

describe("an attempt that is due in an hour", () => {
  const retrying = async () => {
    const fixture = await consoleFixture({}, 5);
    fixture.words = "the bank is away";
    await fixture.callback({ referenceId: "order-7", amount: "17.50" });
    fixture.words = null;
    const { events } = await fixture.receiver.events.list({ state: "retrying" });
    return { ...fixture, eventId: events[0]?.eventId ?? "" };
  };

  it("is made now, in the name of the person who asks, once the page has shown its events", async () => {
    const { receiver, open, eventId, credited } = await retrying();
    const page = await open();
    for (const query of ["?state=retrying", `?event=${eventId}`]) {
      const { text } = await page.get(query);
      expect(text).toContain('data-decide="retry"');
      expect(text).not.toContain('data-decide="replay"');
    }
    const { html, events } = await page.preview({ query: "?state=retrying&max=17.50" }, "retry");
    expect(events).toEqual([{ eventId, reason: "retrying", revision: "" }]);
    expect(html).toContain("17.50");
    expect((await page.preview({ query: "?state=retrying&min=17.51" }, "retry")).events).toEqual([]);
    const decision = { action: "retry", eventId, note: "the bank is back" };
    expect((await page.decide({ ...decision, note: " " })).status).toBe(400);
    expect((await page.decide(decision)).status).toBe(200);
    await expect.poll(() => credited).toEqual(["order-7"]);
    expect((await receiver.events.get(eventId))?.history).toContainEqual(
      expect.objectContaining({ by: "marta", note: "the bank is back" }),
    );
    const second = await page.decide(decision);
    expect([second.status, second.text]).toEqual([
      404,
      expect.stringContaining("waits for no later attempt"),
    ]);
    expect(await page.preview({ eventIds: [eventId] }, "retry")).toMatchObject({ events: [], gone: 1 });
  });

  it("is not made for a user who may not replay", async () => {
    const { open, eventId, credited } = await retrying();
    const page = await open({ can: ["view", "discard"] });
    expect((await page.get("?state=retrying")).text).not.toContain('data-decide="retry"');
    expect((await page.decide({ action: "retry", eventId, note: "n" })).status).toBe(403);
    expect(credited).toEqual([]);
  });
});

describe("a request that comes from another site", () => {
  it.each([
    ["has no header of the console's script", { "x-payhooks-console": "" }],
    ["is what a form can send", { "content-type": "text/plain" }],
    ["is a form", { "content-type": "application/x-www-form-urlencoded" }],
    ["is cross-site, as the browser says", { "sec-fetch-site": "cross-site" }],
    ["is of a sibling domain, as the browser says", { "sec-fetch-site": "same-site" }],
    ["was typed, which no script does", { "sec-fetch-site": "none" }],
    ["has another origin", { "sec-fetch-site": undefined, origin: "https://evil.example" }],
    ["has an opaque origin", { "sec-fetch-site": undefined, origin: "null" }],
    ["has no sign of where it comes from", { "sec-fetch-site": undefined }],
    ["is cross-site with the right origin", { "sec-fetch-site": "cross-site", origin: "same" }],
  ])("decides nothing: it %s", async (_what, headers) => {
    const { receiver, open, eventId, revision } = await held();
    const page = await open();
    const { origin } = new URL(page.url);
    const sent = {
      "content-type": "application/json",
      "x-payhooks-console": "1",
      "sec-fetch-site": "same-origin",
      ...headers,
    };
    const given = Object.entries(sent).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value === "same" ? origin : value] as const],
    );
    const response = await fetch(page.url, {
      method: "POST",
      headers: Object.fromEntries(given),
      body: JSON.stringify({ action: "discard", eventId, revision, note: "evil" }),
    });
    expect(response.status).toBe(403);
    expect((await receiver.events.get(eventId))?.state).toBe("held");
  });

  it("learns what its proxy must do, if it comes from this site after all", async () => {
    const { open, eventId, revision } = await held();
    const page = await open();
    const response = await fetch(page.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-payhooks-console": "1",
        origin: "https://shop.example",
      },
      body: JSON.stringify({ action: "discard", eventId, revision, note: "paid by hand" }),
    });
    expect([response.status, await response.json()]).toMatchObject([
      403,
      { message: expect.stringContaining("let your proxy pass the Host header on, or use HTTPS") },
    ]);
  });

  it("is recognised by its origin where the browser sends nothing else, as without encryption", async () => {
    const { open, eventId, revision } = await held();
    const page = await open();
    const { origin } = new URL(page.url);
    const response = await fetch(page.url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-payhooks-console": "1", origin },
      body: JSON.stringify({ action: "discard", eventId, revision, note: "paid by hand" }),
    });
    expect(response.status).toBe(200);
  });

  it("may read nothing and put the page into no frame", async () => {
    const { open } = await consoleFixture();
    const { headers } = await (await open()).get();
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:/);
  });
});

describe("a decision on something that changed", () => {
  it("is refused: it was replayed by somebody else and held again", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    await fixture.callback({ referenceId: "order-7" });
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open();
    const { events } = await page.preview({ eventIds: [eventId] });
    await fixture.receiver.events.replay(eventId, { by: "somebody else", note: "trying" });
    await expect.poll(async () => (await fixture.receiver.events.get(eventId))?.state).toBe("held");
    for (const action of ["replay", "discard"]) {
      const answer = await page.decide({ action, ...events[0], note: "n" });
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
        409,
        { ok: false, message: expect.stringContaining("has changed since it was shown") },
      ]);
    }
    expect((await fixture.receiver.events.get(eventId))?.replays).toBe(1);
  });
});

describe("rights", () => {
  it.each([
    [["view"], ["replay", "discard"]],
    [["view", "replay"], ["discard"]],
    [["view", "discard"], ["replay"]],
    [
      ["replay", "discard"],
      ["replay", "discard"],
    ],
  ] as const)("with %j somebody may not %j, and the page does not offer it", async (rights, refused) => {
    const { receiver, open, eventId, revision } = await held();
    const page = await open({ can: rights });
    for (const action of refused) {
      expect((await page.decide({ action, eventId, revision, note: "trying" })).status).toBe(403);
      for (const query of ["", `?event=${eventId}`]) {
        expect((await page.get(query)).text).not.toContain(`data-decide="${action}"`);
      }
    }
    expect((await receiver.events.get(eventId))?.state).toBe("held");
  });

  it("without view nothing is shown, whatever the request is", async () => {
    const { open, eventId } = await held();
    const page = await open({ can: ["replay", "discard"] });
    for (const query of ["", `?event=${eventId}`, "?part=regions", "?stream=1", "?asset=console.js"]) {
      const { status, text } = await page.get(query);
      expect([query, status]).toEqual([query, 403]);
      expect(text).not.toContain("order-7");
    }
  });

  it("without any, the page that says so is styled, and has no script", async () => {
    const { open } = await consoleFixture();
    const page = await open({ authorize: () => null });
    const { status, text } = await page.get();
    expect([status, text]).toEqual([403, expect.stringContaining("You may not see this page.")]);
    const linked = [...text.matchAll(/(?:href|src)="(\?[^"]*)"/g)].map(([, address]) => address);
    expect(linked).toEqual(["?asset=icon.svg", "?asset=console.css"]);
    for (const [address, type] of [
      ["?asset=icon.svg", "image/svg+xml"],
      ["?asset=console.css", "text/css; charset=utf-8"],
    ] as const) {
      const asset = await page.get(address);
      expect([asset.status, asset.headers.get("content-type")]).toEqual([200, type]);
      expect(asset.headers.get("x-content-type-options")).toBe("nosniff");
    }
  });
});

describe("a decision that fails", () => {
  it("is answered 500, and the server's log says where it failed, without the words of the error", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    const { receiver, open, eventId, revision } = await held();
    const failure = new Error("marta's secret");
    vi.spyOn(receiver.events, "discard").mockRejectedValue(failure);
    const answer = await (await open()).decide({ action: "discard", eventId, revision, note: "n" });
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.text).message).toBe("Something went wrong. The server's log says where.");
    const [[line]] = log.mock.calls as [[string]];
    expect(line).toMatch(/^payhooks: the console failed: Error\n +at .*decide\.test\.ts/);
    expect(line).not.toContain("secret");
  });

  it.each(Object.entries(HOSTILE))("is answered 500 when %s was thrown", async (_, value) => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    const { receiver, open, eventId, revision } = await held();
    vi.spyOn(receiver.events, "discard").mockImplementation(() => Promise.reject(value()));
    const answer = await (await open()).decide({ action: "discard", eventId, revision, note: "n" });
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.text)).toMatchObject({ ok: false });
    expect(log).toHaveBeenCalledTimes(1);
  });
});

describe.each(Object.entries(MOUNTS))("a receiver that cannot be made, on %s", (_on, mount) => {
  const opened = async (authorize: () => { by: string; can: ["view"] } | null, error: unknown) => {
    const { url, close } = await mount(
      () => {
        throw error;
      },
      { authorize },
    );
    onTestFinished(close);
    const response = await fetch(url);
    return [response.status, await response.text()] as const;
  };
  const marta = (): { by: string; can: ["view"] } => ({ by: "marta", can: ["view"] });

  it("is a page that says so, and the server's log says where, without the words of the error", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    const [status, text] = await opened(marta, new Error("marta's secret"));
    expect([status, text]).toEqual([503, expect.stringContaining("The server&#39;s log says where.")]);
    expect(log.mock.calls).toEqual([[expect.stringMatching(/^payhooks: the console failed: Error\n +at /)]]);
    expect(text + log.mock.calls).not.toContain("secret");
    log.mockClear();
    await opened(marta, "marta's secret");
    expect(log.mock.calls).toEqual([
      ["payhooks: the console failed: a value that is not an Error was thrown, of type string"],
    ]);
  });

  it("shows the message of Payhooks to everybody who may see the console", async () => {
    const error = new PayhooksError("ERR_OPTION_MISSING", "payments.publicKey is missing.", {
      fix: "Set it.",
    });
    const [status, text] = await opened(marta, error);
    expect([status, text]).toEqual([503, expect.stringContaining("payments.publicKey is missing.")]);
    const [other, refused] = await opened(() => null, error);
    expect([other, refused]).toEqual([403, expect.not.stringContaining("publicKey")]);
  });
});

const MANY = Array.from({ length: 501 }, () => "0".repeat(48));

describe("a body that is not a decision", () => {
  it.each([
    ["no JSON", "{", 400],
    ["no object", "null", 400],
    ["no known action", { action: "run", note: "n" }, 400],
    ["no eventId", { action: "replay", note: "n", eventId: "../../etc" }, 400],
    ["an eventId that is none", { action: "replay", note: "n", eventId: 7 }, 400],
    ["no revision", { action: "replay", note: "n", revision: undefined }, 400],
    ["a revision that is none", { action: "discard", note: "n", revision: "*" }, 400],
    ["the revision of something else", { action: "replay", note: "n", revision: "0".repeat(16) }, 409],
    ["a preview of nothing", { action: "preview", decision: "replay" }, 400],
    ["a preview of no decision", { action: "preview", eventIds: [] }, 400],
    ["a preview of ids that are none", { action: "preview", decision: "replay", eventIds: ["x"] }, 400],
    ["a preview of too many", { action: "preview", decision: "replay", eventIds: MANY }, 400],
    ["outcomes of nothing", { action: "outcomes" }, 400],
    ["outcomes of too many", { action: "outcomes", eventIds: MANY }, 400],
    ["no note", { action: "replay" }, 400],
    ["an empty note", { action: "replay", note: " \n" }, 400],
    ["a note that is too long", { action: "replay", note: "n".repeat(501) }, 400],
    ["a body that is too long", { action: "replay", note: "n".repeat(70_000) }, 413],
  ])("is refused: %s", async (_what, sent, status) => {
    const { receiver, open, eventId, revision } = await held();
    const body = typeof sent === "string" ? sent : { eventId, revision, ...sent };
    const answer = await (await open()).decide(body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ ok: false, message: expect.stringMatching(/\w/) });
    expect((await receiver.events.get(eventId))?.state).toBe("held");
  });

  it.each(["PUT", "DELETE", "PATCH"])("is refused: %s", async (method) => {
    const { open } = await consoleFixture();
    const page = await open();
    const response = await fetch(page.url, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD, POST"]);
  });
});
