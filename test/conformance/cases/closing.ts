/** A receiver that closes, and what the probes say before and after. */
import { exchange, request } from "../../e2e/wire.ts";
import { PAYMENT_PATHS, PROBE_PATHS } from "../application.ts";
import { type Case, RECEIVED, refused } from "../case.ts";
import { closeReceiver } from "../control.ts";
import type { Deliveries } from "../deliveries.ts";
import { bytesOf, inTurn, JSON_TYPE, times } from "../sending.ts";

export function closingCases(deliveries: Deliveries): readonly Case[] {
  const last = deliveries.payment();
  const bytes = bytesOf(PAYMENT_PATHS.closing, last);
  return [
    {
      name: "a receiver that lives and is ready says so",
      send: inTurn(probes(PROBE_PATHS.plain)),
      answers: times(2, `200 {"ok":true} ${JSON_TYPE}`),
      effects: [],
    },
    {
      name: "a receiver that closes",
      async send({ port }) {
        const before = await exchange(port, bytes);
        await closeReceiver(port);
        return [before, await exchange(port, bytes)];
      },
      answers: [RECEIVED, refused(503, "ERR_CLOSING")],
      effects: [...deliveries.ranOnce(last), "refused 503 ERR_CLOSING"],
    },
    {
      name: "a receiver whose store is away is not ready, tells a stranger nothing of the store, and lives",
      async send({ port }) {
        const refused = await exchange(port, bytesOf(PAYMENT_PATHS.away, deliveries.payment()));
        const probed = await inTurn(probes(PROBE_PATHS.away))({ port });
        return [refused, ...probed];
      },
      answers: ({ runsAfterResponse = false }) => [
        refused(503, "ERR_INBOX_UNAVAILABLE"),
        `200 {"ok":true} ${JSON_TYPE}`,
        `503 {"ok":false,"code":"${runsAfterResponse ? "inbox-unavailable" : "not-started"}"} ${JSON_TYPE}`,
      ],
      effects: ["refused 503 ERR_INBOX_UNAVAILABLE"],
    },
    {
      name: "a receiver that has closed neither lives nor is ready",
      send: inTurn(probes(PROBE_PATHS.closing)),
      answers: times(2, `503 {"ok":false,"code":"closing"} ${JSON_TYPE}`),
      effects: [],
    },
  ];
}

function probes({ live, ready }: { readonly live: string; readonly ready: string }): readonly Uint8Array[] {
  return [live, ready].map((path) => request("GET", path, []));
}
