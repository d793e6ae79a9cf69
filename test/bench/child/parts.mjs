// What a delivery costs in a loop, by part: everything is in the caches, and nothing but this runs. Prints JSON.
import { createHmac, createPublicKey, createSecretKey, timingSafeEqual, verify } from "node:crypto";
import { createReceiver, memoryInbox } from "@payhooks/core";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";

const COUNT = 4_000;
const ROUNDS = 10;
/** Off the path of a delivery, its handlers run: so many deliveries come between. */
const AT_ONCE = 4;
const secret = "whsec_bench_0123456789abcdef";
const keys = createTestKeys();
const publicKey = createPublicKey(keys.publicKey);
const secretKey = createSecretKey(Buffer.from(secret));
const json = { get: (name) => (name === "content-type" ? "application/json" : null) };

const deliveries = {
  rsa: Array.from({ length: COUNT }, () => {
    const { rawBody } = signPaymentCallback(callbackFields(), keys.privateKey);
    const { signature, ...fields } = JSON.parse(rawBody);
    const canonical = Object.keys(fields)
      .sort()
      .map((name) => `${name}=${fields[name]}`)
      .join("&");
    return {
      rawBody,
      headers: json,
      canonical: Buffer.from(canonical),
      signature: Buffer.from(signature, "base64"),
    };
  }),
  hmac: Array.from({ length: COUNT }, () => {
    const { rawBody, headers } = signConnectWebhook(connectEvent(), secret);
    const signature = headers["x-connect-signature"];
    const get = (name) => (name === "x-connect-signature" ? signature : json.get(name));
    return { rawBody, headers: { get }, signature };
  }),
};

const crypto = {
  rsa: ({ canonical, signature }) => verify("sha256", canonical, publicKey, signature),
  hmac: ({ rawBody }) => createHmac("sha256", secretKey).update(rawBody).digest("hex"),
};

const byHand = {
  rsa({ rawBody }) {
    const event = JSON.parse(rawBody.toString("utf8"));
    const canonical = Object.keys(event)
      .filter((name) => name !== "signature" && event[name] !== null)
      .sort()
      .map((name) => `${name}=${event[name]}`)
      .join("&");
    return verify("sha256", Buffer.from(canonical), publicKey, Buffer.from(event.signature, "base64"));
  },
  hmac({ rawBody, signature }) {
    const expected = Buffer.from(`sha256=${createHmac("sha256", secretKey).update(rawBody).digest("hex")}`);
    return timingSafeEqual(Buffer.from(signature), expected) && JSON.parse(rawBody.toString("utf8"));
  },
};

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function measure(list, call, settled = () => true) {
  const from = process.cpuUsage();
  for (let i = 0; i < COUNT; i += AT_ONCE) {
    await Promise.all(list.slice(i, i + AT_ONCE).map(call));
    await turn();
  }
  while (!settled()) await turn();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / COUNT;
}

async function measureReceiver(scheme, options) {
  let handled = 0;
  const handle = async () => void handled++;
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret },
    inbox: memoryInbox(),
    logger: { info() {}, warn() {}, error() {} },
    ...options,
  });
  receiver.onDeposit(handle).onSettlementApproved(handle);
  await receiver.start();
  const { receive } = scheme === "rsa" ? receiver.payments : receiver.connect;
  const accepts = async ({ rawBody, headers }) => {
    const { status } = await receive({ method: "POST", url: "/", headers, rawBody });
    if (status !== 200) throw new Error(`answered ${status}`);
  };
  const figure = await measure(
    deliveries[scheme],
    accepts,
    () => options.run !== undefined || handled === COUNT,
  );
  if (options.run === undefined) await receiver.close({ graceMs: 1_000 });
  return figure;
}

const parts = {
  signature: (scheme) => measure(deliveries[scheme], async (delivery) => crypto[scheme](delivery)),
  byHand: (scheme) => measure(deliveries[scheme], async (delivery) => byHand[scheme](delivery)),
  accepted: (scheme) => measureReceiver(scheme, { run: "elsewhere" }),
  handled: (scheme) => measureReceiver(scheme, {}),
};

const found = [];
for (let round = 0; round < ROUNDS; round++) {
  for (const scheme of ["rsa", "hmac"]) {
    for (const [part, run] of Object.entries(parts)) {
      globalThis.gc?.();
      const cpuUs = await run(scheme);
      const known = found.find((one) => one.scheme === scheme && one.part === part);
      if (known === undefined) found.push({ scheme, part, cpuUs: [cpuUs] });
      else known.cpuUs.push(cpuUs);
    }
  }
}
// The least: what else the machine does can only add to it.
console.log(JSON.stringify(found.map(({ cpuUs, ...one }) => ({ ...one, cpuUs: Math.min(...cpuUs) }))));
