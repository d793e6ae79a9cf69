import { createReceiver, type Inbox, memoryInbox } from "@payhooks/core";
import { callbackFields, resplitPair, signConnectWebhook, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { consoleFixture, heldId, keys } from "./support/console-fixture.ts";
import { servedTo } from "./support/mounts.ts";

/** The text of a page, without its tags. */
const wordsOf = ({ text }: { readonly text: string }): string =>
  text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

/** A console over an inbox whose store does not answer. */
async function away() {
  const gone = async () => {
    throw new Error("connect ECONNREFUSED");
  };
  const inbox: Inbox = { ...memoryInbox() };
  const broken = new Proxy(inbox, {
    get: (target, name, self) =>
      name === "events" ? { get: gone, list: gone, counts: gone } : Reflect.get(target, name, self),
  });
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: broken,
    run: "elsewhere",
    logger: silent,
  });
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const { url, close } = await servedTo(receiver, ["view", "replay", "discard"]);
  onTestFinished(close);
  return async (query: string) => {
    const response = await fetch(url + query);
    return { status: response.status, words: wordsOf({ text: await response.text() }) };
  };
}

describe("the console", () => {
  it("does not say that nothing has gone wrong, nor that nobody has to do anything, beside held events", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    for (let n = 0; n < 11; n++) await fixture.callback();
    const page = await fixture.open();
    const words = wordsOf(await page.get());
    expect(words).not.toMatch(/nothing has gone wrong|Nobody has/);
    expect(words).toMatch(/This process has noted no decision, alert or failure since/);
    expect(wordsOf(await page.get("?state=held&reason=conflict"))).toContain(
      "No event that matches is held.",
    );
    expect(wordsOf(await page.get("?state=held&tenant=x"))).toContain("No event that matches is held.");
    expect(wordsOf(await page.get("?state=running"))).toContain("No event is running.");
  });

  it("says who has erased how many events, and names none of them", async () => {
    const fixture = await consoleFixture();
    await fixture.callback({ referenceId: "order-of-amina" });
    await fixture.callback({ referenceId: "order-2" });
    const page = await fixture.open();
    await page.get();
    await fixture.receiver.events.erase({ state: "finished" }, { by: "marta" });
    const words = async () => wordsOf(await page.get());
    await expect.poll(words).toMatch(/erased .*marta ?: 2 events, of which only the ids are left/);
    expect(await words()).not.toContain("order-of-amina");
  });

  it("does not take a store that is away for an empty one", async () => {
    const get = await away();
    const list = await get("");
    expect(list.status).toBe(503);
    expect(list.words).toContain("nobody knows which events it has");
    expect(list.words).not.toMatch(/Nothing is held|Held 0| 0 Held/);
    expect(list.words.match(/\? unknown/g)).toHaveLength(5);
    for (const query of ["?search=order-7", `?search=${"0".repeat(48)}`]) {
      const found = await get(query);
      expect([found.status, found.words]).toEqual([
        503,
        expect.not.stringMatching(/Nothing (?:is known|was found)/),
      ]);
    }
    const life = await get(`?event=${"0".repeat(48)}`);
    expect([life.status, life.words]).toEqual([503, expect.stringContaining("Event not read")]);
    expect(life.words).not.toContain("There is no record");
  });

  it("shows the signed text, and nothing that a sender put in front of it", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the order is paid already";
    const fields = callbackFields({ amount: "1.000000", referenceId: "order-17" });
    const { rawBody, headers } = signPaymentCallback(fields, keys.privateKey);
    const forged = `{"amount":"99999.000000","referenceId":"order-99","signature":"${"ab".repeat(1_500)}",`;
    const body = Buffer.from(rawBody.toString().replace("{", forged));
    expect(await fixture.deliver({ rawBody: body, headers })).toBe(200);
    const page = await fixture.open();
    const { text } = await page.get(`?event=${await heldId(fixture.receiver)}`);
    expect(text).not.toMatch(/99999|order-99|abab/);
    const words = wordsOf({ text });
    expect(words).toContain("What its handlers get amount 1.000000");
    expect(words).toContain("What was signed amount= 1.000000");
  });

  it("calls a hash a hash, and not the id of a transaction", async () => {
    const fixture = await consoleFixture();
    await fixture.deliver(resplitPair("order-7", keys.privateKey).forged);
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open();
    const words = wordsOf(await page.get(`?event=${eventId}`));
    const { id } = (await fixture.receiver.events.get(eventId)) ?? { id: "" };
    expect(words).toContain(`hash of what was signed ${id}`);
    expect(words).not.toContain(`payTxnId ${id}`);
    expect(wordsOf(await page.get())).toContain(`Unnamed (${id.slice(0, 8)})`);
  });

  it("says that an id was not looked for where its tenant is missing", async () => {
    const receiver = createReceiver({
      payments: { publicKey: () => ({ tenant: "shop-7", keys: keys.publicKey }) },
      inbox: memoryInbox(),
      run: "elsewhere",
      logger: silent,
    });
    onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
    const { url, close } = await servedTo(receiver, ["view"]);
    onTestFinished(close);
    const asked = async (query: string) => wordsOf({ text: await (await fetch(url + query)).text() });
    expect(await asked("?search=pay-1")).toContain("name the tenant");
    expect(await asked("?search=pay-1&tenant=shop-7")).toContain(
      "Nothing is known under this reference or id.",
    );
  });

  it("shows the events of a subject in the order in which they were signed, and which one is the latest", async () => {
    const fixture = await consoleFixture();
    const from = Date.now() - 60_000;
    const say = (decision: "approved" | "declined", at: number) =>
      fixture.webhook(
        signConnectWebhook(
          {
            event: `connected_account.${decision}`,
            idempotency_key: `evt_${decision}`,
            occurred_at: new Date(from + at).toISOString(),
            data: {
              object: "connected_account",
              id: "cm_1",
              master_merchant_id: "mm_1",
              kyc_status: decision,
            },
          },
          keys.webhookSecret,
        ),
      );
    expect([await say("declined", 5_000), await say("approved", 0)]).toEqual([200, 200]);
    const { events } = await fixture.receiver.events.list({ referenceId: "cm_1" });
    expect(events.map(({ state }) => state).toSorted()).toEqual(["done", "stale"]);
    const stale = events.find(({ state }) => state === "stale");
    const page = await fixture.open();
    const words = wordsOf(await page.get(`?event=${stale?.eventId}`));
    const later = new Date(from + 5_000).toISOString();
    expect(words).toMatch(/The same subject.*connected_account\.approved.*connected_account\.declined/);
    expect(words).toContain(`It was overtaken: the event signed at ${later} has replaced it.`);
    expect(words).toContain("It has run, and is the latest event.");
    const hidden = await fixture.open({ redact: ["id"] });
    expect((await hidden.get(`?event=${stale?.eventId}`)).text).not.toContain("cm_1");
  });

  it("says that the receiver is closed", async () => {
    const fixture = await consoleFixture();
    const page = await fixture.open();
    expect(wordsOf(await page.get())).not.toContain("is closed");
    await fixture.receiver.close({ graceMs: 0 });
    expect(wordsOf(await page.get())).toContain("it takes no delivery and runs no event");
  });
});
