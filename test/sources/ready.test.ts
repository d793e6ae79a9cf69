/** The ready sources over real sockets, with the senders' own libraries as signers, and vectors that the senders publish. */
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { sign as signForGithub } from "@octokit/webhooks-methods";
import { createReceiver, memoryInbox } from "@payhooks/core";
import {
  github,
  paystack,
  type Source,
  shopify,
  slack,
  standardWebhooks,
  stripe,
} from "@payhooks/core/sources";
import { fakeClock } from "@payhooks/core/testing";
import { webhooks } from "@payhooks/express";
import express from "express";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../support/silent.ts";

type Headers = Readonly<Record<string, string>>;

/** How a sender signs a body, at this time. */
interface Sender {
  readonly make: () => Source;
  readonly body: string;
  readonly event: string;
  readonly id: string | null;
  readonly sign: (body: string, now: number) => Promise<Headers> | Headers;
  /** Header fields that nothing signs, with other values. */
  readonly loose: Headers;
  /** How often one body runs, whatever its loose header fields say. */
  readonly runs?: number;
}

const WHSEC = `whsec_${Buffer.from("a secret of twenty-four bytes").toString("base64")}`;
const SECRET = "a secret of this sender 0123456789";
const seconds = (now: number): number => Math.floor(now / 1000);
const ed = generateKeyPairSync("ed25519");
const whpk = `whpk_${ed.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64")}`;
const invoice = JSON.stringify({
  type: "invoice.paid",
  timestamp: "2026-11-26T10:00:00Z",
  data: { invoice: "i-1" },
});

function standard(body: string, now: number, names: "webhook" | "svix" = "webhook"): Headers {
  const signature = new Webhook(WHSEC).sign("msg_1", new Date(now), body);
  return {
    [`${names}-id`]: "msg_1",
    [`${names}-timestamp`]: String(seconds(now)),
    [`${names}-signature`]: signature,
  };
}

const senders: Readonly<Record<string, Sender>> = {
  "Standard Webhooks": {
    make: () => standardWebhooks({ secret: WHSEC }),
    body: invoice,
    event: "invoice.paid",
    id: "msg_1",
    sign: standard,
    loose: { "webhook-topic": "invoice.voided", "svix-id": "msg_2", "idempotency-key": "2" },
  },
  "Standard Webhooks with Svix's headers": {
    make: () => standardWebhooks({ secret: WHSEC, headers: "svix" }),
    body: invoice,
    event: "invoice.paid",
    id: "msg_1",
    sign: (body, now) => standard(body, now, "svix"),
    loose: { "webhook-id": "msg_2" },
  },
  "Standard Webhooks with a public key": {
    make: () => standardWebhooks({ secret: WHSEC, publicKey: whpk }),
    body: invoice,
    event: "invoice.paid",
    id: "msg_1",
    sign(body, now) {
      const text = Buffer.from(`msg_1.${seconds(now)}.${body}`);
      const signature = `v1,AAAA v1a,${sign(null, text, ed.privateKey).toString("base64")}`;
      return { ...standard(body, now), "webhook-signature": signature };
    },
    loose: { "svix-id": "msg_2" },
  },
  Stripe: {
    make: () => stripe({ secret: SECRET }),
    body: JSON.stringify({
      id: "evt_1",
      type: "charge.refunded",
      created: 1_764_000_000,
      data: { object: { id: "ch_1" } },
    }),
    event: "charge.refunded",
    id: "evt_1",
    sign: (body, now) => ({
      "stripe-signature": new Stripe("sk_test_x").webhooks.generateTestHeaderString({
        payload: body,
        secret: SECRET,
        timestamp: seconds(now),
      }),
    }),
    loose: { "stripe-account": "acct_2", "idempotency-key": "2" },
  },
  GitHub: {
    make: () => github({ secret: SECRET }),
    body: JSON.stringify({ ref: "refs/heads/main" }),
    event: "push",
    id: null,
    sign: async (body) => ({
      "x-hub-signature-256": await signForGithub(SECRET, body),
      "x-github-event": "push",
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    }),
    loose: { "x-github-event": "release", "x-github-delivery": "2", "x-github-hook-id": "3" },
  },
  Shopify: {
    make: () => shopify({ secret: SECRET }),
    body: JSON.stringify({ id: 820_982_911, financial_status: "paid" }),
    event: "orders/create",
    id: null,
    sign: (body) => ({
      "x-shopify-hmac-sha256": createHmac("sha256", SECRET).update(body).digest("base64"),
      "x-shopify-topic": "orders/create",
      "x-shopify-shop-domain": "a.example",
      "x-shopify-webhook-id": "1",
    }),
    loose: {
      "x-shopify-topic": "orders/updated",
      "x-shopify-shop-domain": "b.example",
      "x-shopify-webhook-id": "2",
    },
    runs: 2,
  },
  Paystack: {
    make: () => paystack({ secret: SECRET }),
    body: JSON.stringify({ event: "charge.success", data: { id: 302_961, reference: "order-17" } }),
    event: "charge.success",
    id: "charge.success:302961",
    sign: (body) => ({ "x-paystack-signature": createHmac("sha512", SECRET).update(body).digest("hex") }),
    loose: { "x-paystack-event": "transfer.success", "x-request-id": "2" },
  },
  Slack: {
    make: () => slack({ secret: SECRET }),
    body: JSON.stringify({
      type: "event_callback",
      event_id: "Ev1",
      event_time: 1_764_000_000,
      event: { type: "app_mention" },
    }),
    event: "app_mention",
    id: "Ev1",
    sign: (body, now) => ({
      "x-slack-request-timestamp": String(seconds(now)),
      "x-slack-signature": `v0=${createHmac("sha256", SECRET)
        .update(`v0:${seconds(now)}:${body}`)
        .digest("hex")}`,
    }),
    loose: { "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout" },
  },
};

/** A source on a server. Nothing runs before a delivery is answered. */
async function receiving(one: Source, now: number = Date.UTC(2026, 10, 26)) {
  const clock = fakeClock(now);
  const ran: { readonly event: string; readonly id: string; readonly data: unknown }[] = [];
  const receiver = createReceiver({
    clock,
    inbox: memoryInbox({ clock }),
    logger: silent,
    run: "elsewhere",
    sources: { one },
  });
  receiver.on("one", "*", (event) => void ran.push(event));
  const server = express().use("/one", webhooks(receiver, "one")).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.close();
    await receiver.close({ graceMs: 0 });
  });
  async function post(
    body: string,
    headers: Headers,
  ): Promise<{ readonly status: number; readonly body: string }> {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/one`;
    const answer = await fetch(url, { method: "POST", body, headers });
    const text = await answer.text();
    await receiver.work();
    return { status: answer.status, body: text };
  }
  return { clock, ran, post };
}

describe.each(Object.entries(senders))(
  "%s",
  (_name, { make, body, event, id, sign: signed, loose, runs = 1 }) => {
    it("is verified as its own sender signs, and runs once", async () => {
      const { clock, ran, post } = await receiving(make());
      const headers = await signed(body, clock.now());
      for (let copy = 0; copy < 2; copy++) expect((await post(body, headers)).status).toBe(200);
      expect(ran).toHaveLength(1);
      expect(ran[0]).toMatchObject({ event, ...(id === null ? {} : { id }) });
    });

    it("refuses a body of which one byte differs, and another secret", async () => {
      const { clock, ran, post } = await receiving(make());
      const headers = await signed(body, clock.now());
      const { status, body: answer } = await post(body.replace(/.$/, " }"), headers);
      expect([status, answer]).toEqual([401, expect.stringContaining("ERR_SIGNATURE_INVALID")]);
      expect((await post(body, {})).body).toContain("ERR_SIGNATURE_MISSING");
      expect(ran).toEqual([]);
    });

    it("runs the same body as often as it should with every loose header field changed", async () => {
      const { clock, ran, post } = await receiving(make());
      const headers = await signed(body, clock.now());
      await post(body, headers);
      const changes = [loose, ...Object.entries(loose).map(([name, value]) => ({ [name]: value }))];
      for (const change of changes) expect((await post(body, { ...headers, ...change })).status).toBe(200);
      for (const name of Object.keys(loose)) {
        const { [name]: _left, ...others } = headers;
        expect((await post(body, others)).status).toBe(200);
      }
      expect(ran).toHaveLength(runs);
    });
  },
);

describe("Stripe", () => {
  it("is read in both of its versions, whose times are seconds, and a text with its zone", async () => {
    const { make, sign: signed } = senders.Stripe as Sender;
    const { clock, ran, post } = await receiving(make());
    const created = "2025-11-24T16:00:00.250Z";
    const body = JSON.stringify({
      id: "evt_v2",
      object: "v2.core.event",
      type: "v1.billing.meter.no_meter",
      created,
    });
    expect((await post(body, await signed(body, clock.now()))).status).toBe(200);
    expect(ran).toMatchObject([
      { event: "v1.billing.meter.no_meter", id: "evt_v2", occurredAt: new Date(created) },
    ]);
  });
});

describe.each(["Standard Webhooks", "Stripe", "Slack"])("%s", (name) => {
  it("refuses what was signed six minutes ago, or will be in six", async () => {
    const { make, body, sign: signed } = senders[name] as Sender;
    for (const minutes of [-6, 6]) {
      const { clock, ran, post } = await receiving(make());
      const { status } = await post(body, await signed(body, clock.now() + minutes * 60_000));
      expect([status, ran]).toEqual([400, []]);
    }
  });
});

interface Vector {
  readonly page: string;
  readonly make: () => Source;
  /** The time at which it was signed, in seconds; null if nothing signs a time. */
  readonly at: number | null;
  readonly body: string;
  readonly headers: Headers;
}

/**
 * Examples that the senders publish whole: with the secret, the body and the signature. Those of Stripe and Shopify lack the secret,
 * and Paystack shows none. Their own library, or its rule, signs for them above.
 */
const vectors: Readonly<Record<string, Vector>> = {
  GitHub: {
    page: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
    make: () => github({ secret: "It's a Secret to Everybody" }),
    at: null,
    body: "Hello, World!",
    headers: {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
  },
  Slack: {
    page: "https://api.slack.com/docs/verifying-requests-from-slack",
    make: () => slack({ secret: "8f742231b10e8888abcd99yyyzzz85a5" }),
    at: 1_531_420_618,
    body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    headers: {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
  },
  "Standard Webhooks": {
    page: "https://github.com/standard-webhooks/standard-webhooks (the tests of its libraries)",
    make: () => standardWebhooks({ secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }),
    at: 1_614_265_330,
    body: '{"test": 2432232314}',
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
  },
};

describe.each(Object.entries(vectors))("the published vector of %s", (_name, vector) => {
  const { make, at, body, headers } = vector;
  const received = (seconds: number | null) =>
    receiving(make(), seconds === null ? undefined : seconds * 1_000);

  it("is taken at the time at which it was signed", async () => {
    const { post } = await received(at);
    expect((await post(body, headers)).status).toBe(200);
  });

  it("is refused with any one byte changed", async () => {
    const { post } = await received(at);
    for (let byte = 0; byte < body.length; byte += Math.ceil(body.length / 20)) {
      const other = String.fromCharCode(body.charCodeAt(byte) ^ 1);
      const changed = body.slice(0, byte) + other + body.slice(byte + 1);
      expect((await post(changed, headers)).body, `byte ${byte}`).toContain("ERR_SIGNATURE_INVALID");
    }
  });

  if (at === null) return;
  it("is refused six minutes later, and with its time brought forward", async () => {
    const { post } = await received(at + 360);
    expect((await post(body, headers)).body).toContain("ERR_TIMESTAMP_EXPIRED");
    const later = Object.entries(headers).map(([name, value]) => [
      name,
      value.replace(`${at}`, `${at + 360}`),
    ]);
    expect((await post(body, Object.fromEntries(later))).body).toContain("ERR_SIGNATURE_INVALID");
  });
});

describe("Slack", () => {
  it("confirms the address by itself", async () => {
    const { sign: signed, make } = senders.Slack as Sender;
    const { clock, ran, post } = await receiving(make());
    const body = JSON.stringify({ type: "url_verification", challenge: "3eZbrw1aB" });
    expect(await post(body, await signed(body, clock.now()))).toMatchObject({
      status: 200,
      body: "3eZbrw1aB",
    });
    expect(ran).toEqual([]);
    expect((await post(body, {})).status).toBe(401);
  });
});
