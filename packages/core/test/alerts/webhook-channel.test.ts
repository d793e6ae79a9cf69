/** The messages of `webhookChannel`, which a source of Payhooks receives over a real socket. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { type AlertMessage, type IncidentKind, testAlerts, webhookChannel } from "@payhooks/core/alerts";
import { webhooks } from "@payhooks/core/fetch";
import { standardWebhooks } from "@payhooks/core/sources";
import { expect, it, onTestFinished } from "vitest";
import { viaFetch } from "../../../../test/conformance/servers/node-bridge.ts";
import { silent } from "../../../../test/support/silent.ts";
import {
  type IncidentObservation,
  observationIn,
  observationsInCounts,
} from "../../src/alerts/incident-observation.ts";
import { Incidents } from "../../src/alerts/incidents.ts";
import type { Alert, Notice } from "../../src/notices/notice.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

const alertOf = (kind: Alert["kind"]): Alert => ({
  type: "alert",
  kind,
  flow: "payments",
  code: "ERR_SIGNATURE_INVALID",
  address: null,
  failures: 10,
  addresses: 3,
  windowMs: 300_000,
});
const NO_EVENTS = { waiting: 0, retrying: 0, running: 0, held: 0, heldBy: {}, oldestDueMs: null };

/** What a process observes for each kind. */
function observationsByKind(
  at: number,
): Readonly<Record<Exclude<IncidentKind, "test">, IncidentObservation | null | undefined>> {
  const observe = (notice: object): IncidentObservation | null => observationIn({ at, ...notice } as Notice);
  return {
    overdue: observationsInCounts({ ...NO_EVENTS, oldestDueMs: 400_000 }, 300_000)[0],
    held: observationsInCounts({ ...NO_EVENTS, held: 1, heldBy: { rejected: 1 } }, 300_000)[0],
    stalled: observe({ type: "stalled", during: "accept", error: "ECONNREFUSED", stack: null }),
    "all-failing": observe(alertOf("all-failing")),
    probing: observe(alertOf("probing")),
    "held-full": observe(alertOf("held-full")),
    refused: observe(alertOf("refused")),
    "data-lost": observe({ type: "data-lost", why: "missing" }),
    "keys-unreadable": observe({
      type: "keys-unreadable",
      option: "payments.publicKey",
      code: "ERR_KEY_UNREADABLE",
      error: "Error",
    }),
  };
}

it("a source of Payhooks takes a message about every kind of incident", async () => {
  const taken: AlertMessage[] = [];
  const receiver = createReceiver({
    sources: { ops: standardWebhooks({ secret: SECRET }) },
    inbox: memoryInbox(),
    run: "after-response",
    logger: silent,
  });
  receiver.on("ops", "*", ({ data }) => void taken.push(data as AlertMessage));
  const server = createServer(viaFetch(webhooks(receiver, "ops")));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.close();
    await receiver.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const channel = webhookChannel({ url, secret: SECRET });

  const now = Date.now();
  const observations = observationsByKind(now);
  const incidents = Incidents.fromNote("", now);
  for (const observation of Object.values(observations)) {
    if (observation === null || observation === undefined) throw new Error("nothing was observed");
    incidents.observe(observation, now);
  }
  for (const { message } of incidents.dueMessages([channel.name], "shop", now, 1)) {
    await channel.send(message, new AbortController().signal);
  }
  expect(await testAlerts([channel])).toEqual({ webhook: null });
  await receiver.work();
  expect(taken.map(({ kind }) => kind).sort()).toEqual([...Object.keys(observations), "test"].sort());
});
