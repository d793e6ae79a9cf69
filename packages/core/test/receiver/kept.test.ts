/** The signed text of a callback is kept. However a body spells it, people find and see what its handlers get. */
import { createHash } from "node:crypto";
import {
  createReceiver,
  type EventPage,
  memoryInbox,
  type PaymentEvent,
  type Receiver,
} from "@payhooks/core";
import {
  type CallbackFields,
  callbackFields,
  createTestKeys,
  fakeClock,
  signPaymentCallback,
} from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { canonicalString } from "../../src/signature/canonical.ts";
import { settle } from "../../src/testing/clock.ts";

const keys = createTestKeys();
const JUNK = "what nobody has signed";

const unicode = (text: string): string =>
  [...text].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

/** How a sender may spell a body without touching its signature. */
interface Spelling {
  /** Each of these fields becomes part of the name of the next one. */
  readonly swallowed: readonly string[];
  /** Members with these names stand in front of the genuine ones. The last one of a name counts. */
  readonly twice: readonly string[];
  readonly escaped: boolean;
}

const NAMES = Object.keys(callbackFields()).toSorted();

const spelling: fc.Arbitrary<Spelling> = fc.record({
  swallowed: fc.subarray(NAMES.slice(0, -1)),
  twice: fc.subarray([...NAMES, "signature"]),
  escaped: fc.boolean(),
});

/** The body of a signed callback in another spelling. */
function spelt(fields: CallbackFields, signature: string, how: Spelling): Buffer {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const members: [string, string][] = [];
  let before = "";
  for (const [name, value] of given.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (how.swallowed.includes(name)) before += `${name}=${value}&`;
    else {
      members.push([before + name, String(value)]);
      before = "";
    }
  }
  members.push(["signature", signature]);
  const junk = how.twice.map((name): [string, string] => [name, JUNK]);
  const quoted = (text: string): string => (how.escaped ? `"${unicode(text)}"` : JSON.stringify(text));
  const kept = junk.filter(([name]) => members.some(([other]) => other === name));
  return Buffer.from(`{${[...kept, ...members].map((each) => each.map(quoted).join(":")).join(",")}}`);
}

interface ReceiverFixture {
  readonly receiver: Receiver;
  readonly got: PaymentEvent[];
  send(rawBody: Buffer): Promise<number>;
  /** As `send`, signed by the service. */
  callback(fields: Parameters<typeof callbackFields>[0]): Promise<number>;
}

/** A receiver whose handlers end as `handle` does, on a clock that stands still. */
async function receiverFixture(
  handle: () => void,
  payments: object = { publicKey: keys.publicKey },
): Promise<ReceiverFixture> {
  const clock = fakeClock();
  const receiver = createReceiver({
    payments,
    inbox: memoryInbox({ clock }),
    clock,
    logger: silent,
  } as Parameters<typeof createReceiver>[0]);
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const got: PaymentEvent[] = [];
  const note = (event: PaymentEvent): void => {
    got.push(event);
    handle();
  };
  receiver.ignore("WITHDRAWAL").onDeposit({ SUCCESS: note, FAILED: note });
  await receiver.start();
  const send = async (rawBody: Buffer): Promise<number> => {
    const headers = { get: (name: string) => (name === "content-type" ? "application/json" : null) };
    const { status } = await receiver.payments.receive({ method: "POST", url: "/", headers, rawBody });
    await settle();
    return status;
  };
  return {
    receiver,
    got,
    send,
    callback: (fields) =>
      send(signPaymentCallback(callbackFields(fields, clock.now()), keys.privateKey).rawBody),
  };
}

const down = (): void => {
  throw new Error("the database is down");
};

describe("a callback in any spelling", () => {
  it("is kept as it was signed, found by its reference, and shown as its handlers get it", async () => {
    const one = await receiverFixture(down);
    let swallowing = 0;
    await fc.assert(
      fc.asyncProperty(spelling, async (how) => {
        const fields = callbackFields();
        const { referenceId, payTxnId } = fields;
        const { rawBody } = signPaymentCallback(fields, keys.privateKey);
        const { signature } = JSON.parse(rawBody.toString()) as { signature: string };
        expect(await one.send(spelt(fields, signature, how))).toBe(200);
        if (how.swallowed.length > 0) swallowing++;

        const { events } = await one.receiver.events.list({ referenceId });
        expect(events).toMatchObject([{ id: payTxnId, referenceId, state: "retrying" }]);
        const delivery = events[0]?.delivery;
        if (delivery == null) throw new Error("no delivery is kept");
        expect(Buffer.from(delivery.content).toString()).toBe(canonicalString(fields));
        expect(JSON.stringify(events)).not.toContain(JUNK);

        const contents = one.receiver.contents(delivery);
        const got = one.got.at(-1) as unknown as Record<string, unknown>;
        expect(contents.fields).toEqual(NAMES.map((name) => ({ name, value: got[name] })));
        expect(got).toMatchObject(fields);
        expect(contents.signed.map(({ text }) => text).join("")).toBe(canonicalString(fields));
      }),
      { numRuns: 300 },
    );
    expect(swallowing).toBeGreaterThan(100);
  });

  it("is kept without the parts that are not signed, however long they are", async () => {
    const one = await receiverFixture(down);
    const genuine = signPaymentCallback(callbackFields({ referenceId: "order-17" }), keys.privateKey).rawBody;
    const junk = `"signature":"${"ab".repeat(1_500)}","message":[${Array.from({ length: 30 }, () => `"${"z".repeat(100)}"`)}],`;
    expect(await one.send(Buffer.from(genuine.toString().replace("{", `{${junk}`)))).toBe(200);
    const [event] = (await one.receiver.events.list({ referenceId: "order-17" })).events;
    expect(event?.delivery?.content.byteLength).toBeLessThan(500);
    expect(JSON.stringify(event)).not.toMatch(/zzz|abab/);
  });
});

describe("a reference", () => {
  /** Letters of three bytes: 100 of them are allowed. */
  const long = "አ".repeat(85);

  it.each([
    ["while events wait", down],
    ["once they are finished", () => {}],
  ])("that begins like another is another, %s", async (_, handle) => {
    const one = await receiverFixture(handle);
    expect(await one.callback({ payTxnId: "tx-1", referenceId: `${long}አአአአአ` })).toBe(200);
    expect(await one.callback({ payTxnId: "tx-2", referenceId: `${long}ለበሐመሠ`, status: "FAILED" })).toBe(200);
    const ids = async (referenceId: string) =>
      (await one.receiver.events.list({ referenceId })).events.map(({ id }) => id);
    expect(await ids(`${long}አአአአአ`)).toEqual(["tx-1"]);
    expect(await ids(`${long}ለበሐመሠ`)).toEqual(["tx-2"]);
    expect(await ids(long)).toEqual([]);
  });

  it("that looks like the digest of a long reference does not find the events of the long one", async () => {
    const one = await receiverFixture(() => {});
    const reference = "r".repeat(600);
    const digest = createHash("sha256").update(JSON.stringify(reference)).digest("hex");
    expect(await one.callback({ payTxnId: "stranger", referenceId: `sha256:${digest}` })).toBe(200);
    expect((await one.receiver.events.list({ referenceId: reference })).events).toEqual([]);
    const { events } = await one.receiver.events.list({ referenceId: `sha256:${digest}` });
    expect(events.map(({ id }) => id)).toEqual(["stranger"]);
  });

  it("finds each of a thousand events that have it", async () => {
    const one = await receiverFixture(() => {});
    for (let n = 0; n < 1_100; n++) await one.callback({ referenceId: "order-17", status: "FAILED" });
    await one.callback({ payTxnId: "paid", referenceId: "order-17" });
    const found: string[] = [];
    let cursor: string | null = null;
    do {
      const page: EventPage = await one.receiver.events.list({
        referenceId: "order-17",
        limit: 1_000,
        cursor,
      });
      found.push(...page.events.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== null);
    expect(new Set(found).size).toBe(1_101);
    expect(found.filter((id) => id === "paid")).toHaveLength(1);
  });

  it("is searched for with its tenant, as an id is", async () => {
    const resolver = {
      publicKey: ({ merchantId }: { merchantId: string }) => ({ tenant: merchantId, keys: keys.publicKey }),
    };
    const one = await receiverFixture(() => {}, resolver);
    expect(await one.callback({ payTxnId: "tx-b", referenceId: "order-17", merchantId: "B" })).toBe(200);
    for (const query of [{ referenceId: "order-17" }, { id: "tx-b" }]) {
      await expect(one.receiver.events.list(query)).rejects.toMatchObject({ code: "ERR_OPTION_MISSING" });
      expect((await one.receiver.events.list({ ...query, tenant: "A" })).events).toEqual([]);
      expect((await one.receiver.events.list({ ...query, tenant: "B" })).events).toHaveLength(1);
    }
  });
});
