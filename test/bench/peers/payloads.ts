/** Deliveries as the services of the peers sign them, of the size of ours. */
import { createHmac, randomUUID } from "node:crypto";
import type { SignedDelivery } from "@payhooks/core/testing";
import { BODY_BYTES } from "../deliveries.ts";
import type { PeerName } from "../protocol.ts";

const TYPE = { "content-type": "application/json" };

/** The form of a delivery for each library. */
const BODIES: Readonly<Record<PeerName, () => object>> = {
  octokit: () => ({ action: "opened", number: 7, repository: { id: 17, name: "shop" }, id: randomUUID() }),
  bolt: () => ({
    type: "event_callback",
    team_id: "T017",
    event: { type: "app_mention", user: "U7" },
    event_id: randomUUID(),
  }),
  stripe: () => ({
    id: `evt_${randomUUID()}`,
    object: "event",
    created: Math.floor(Date.now() / 1_000),
    type: "payout.paid",
    data: { object: {} },
  }),
  standardwebhooks: () => ({ type: "settlement.approved", id: randomUUID() }),
  svix: () => ({ type: "settlement.approved", id: randomUUID() }),
};

/** Signed now: most of them refuse what is older than five minutes. */
export function peerDeliveries(peer: PeerName, count: number, secret: string): readonly SignedDelivery[] {
  return Array.from({ length: count }, () => {
    const rawBody = padded(BODIES[peer]());
    return { rawBody, headers: { ...TYPE, ...headersOf(peer, rawBody, secret) } };
  });
}

/** With a text that makes it as long as a webhook of ours. */
function padded(body: object): Buffer {
  const without = Buffer.byteLength(JSON.stringify({ ...body, description: "" }));
  const description = "Settlements of the month, as they were asked for. ".repeat(9);
  return Buffer.from(
    JSON.stringify({ ...body, description: description.slice(0, BODY_BYTES.hmac - without) }),
  );
}

function headersOf(peer: PeerName, body: Buffer, secret: string): Readonly<Record<string, string>> {
  const hmac = (key: string | Buffer, ...parts: readonly (string | Buffer)[]) => {
    const digest = createHmac("sha256", key);
    for (const part of parts) digest.update(part);
    return digest;
  };
  const seconds = String(Math.floor(Date.now() / 1_000));
  const id = `msg_${randomUUID()}`;
  const symmetric = (prefix: string): Readonly<Record<string, string>> => ({
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: seconds,
    [`${prefix}-signature`]: `v1,${hmac(Buffer.from(secret), `${id}.${seconds}.`, body).digest("base64")}`,
  });
  switch (peer) {
    case "octokit":
      return {
        "x-github-event": "pull_request",
        "x-github-delivery": id,
        "x-hub-signature-256": `sha256=${hmac(secret, body).digest("hex")}`,
      };
    case "bolt":
      return {
        "x-slack-request-timestamp": seconds,
        "x-slack-signature": `v0=${hmac(secret, `v0:${seconds}:`, body).digest("hex")}`,
      };
    case "stripe":
      return {
        "stripe-signature": `t=${seconds},v1=${hmac(secret, `${seconds}.`, body).digest("hex")}`,
      };
    case "standardwebhooks":
      return symmetric("webhook");
    case "svix":
      return symmetric("svix");
  }
}
