/** A ready source of ours on Express, in the place of its sender's own library. */
import type { Server } from "node:http";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { github, type Source, standardWebhooks, stripe } from "@payhooks/core/sources";
import { webhooks } from "@payhooks/express";
import express from "express";
import { silent } from "../../support/silent.ts";
import type { PeerName } from "../protocol.ts";
import { HOST, listening } from "./framework.ts";
import type { Fresh } from "./receiver.ts";

const SOURCES: Partial<Record<PeerName, (secret: string) => Source>> = {
  octokit: (secret) => github({ secret }),
  stripe: (secret) => stripe({ secret }),
  standardwebhooks: (secret) => standardWebhooks({ secret: Buffer.from(secret).toString("base64") }),
};

/** In memory, with one handler for every name. */
export async function sourceOnExpress(
  path: string,
  peer: PeerName,
  secret: string,
  handle: () => Promise<void>,
): Promise<{ readonly server: Server; readonly fresh: Fresh }> {
  const made = SOURCES[peer]?.(secret);
  if (made === undefined) throw new Error(`no source for ${peer}`);
  const inbox = memoryInbox();
  const receiver = createReceiver({ sources: { sender: made }, inbox, logger: silent });
  receiver.on("sender", "*", handle);
  await receiver.start();
  const app = express().use(path, webhooks(receiver, "sender"));
  const end = async (): Promise<void> => void (await receiver.close({ graceMs: 0 }));
  return {
    server: await listening(app.listen(0, HOST)),
    fresh: { receiver, inbox, file: null, end },
  };
}
