/** Payhooks beside the merchant's own application, which reads bodies too. */
import { type Answer, exchange, request } from "../../e2e/wire.ts";
import { APP_PATH, TRAP_PATH } from "../application.ts";
import { type Case, RECEIVED, refused, type Target } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { AS_JSON, bytesOf, times } from "../sending.ts";

export function applicationCases(deliveries: Deliveries): readonly Case[] {
  const trapped = deliveries.webhookWith('"fee":10.0');
  return [
    {
      name: "a body that was read before",
      send: (target) =>
        Promise.all(
          spoiling(target).map((trap) => exchange(target.port, bytesOf(TRAP_PATH + trap, trapped))),
        ),
      answers: (target) => spoiling(target).map(() => refused(500, "ERR_BODY_CONSUMED")),
      effects: (target) => spoiling(target).map(() => "refused 500 ERR_BODY_CONSUMED"),
    },
    {
      name: "a body that was read before, its bytes kept",
      async send(target) {
        const answers: Answer[] = [];
        for (const trap of sparing(target)) {
          answers.push(await exchange(target.port, bytesOf(TRAP_PATH + trap, trapped)));
        }
        return answers;
      },
      answers: (target) => sparing(target).map(() => RECEIVED),
      effects: (target) => {
        const copies = sparing(target).length;
        if (copies === 0) return [];
        return [...deliveries.ranOnce(trapped), ...times(copies - 1, deliveries.duplicate(trapped))];
      },
    },
    {
      name: "the application's own JSON",
      async send({ port }) {
        const answer = await exchange(
          port,
          request("POST", APP_PATH, AS_JSON, Buffer.from(' { "n" : 21.0 } ')),
        );
        // How a framework spells the type of its own JSON is its own affair.
        return [{ ...answer, headers: new Map() }];
      },
      answers: ['200 {"doubled":42}'],
      effects: [],
    },
  ];
}

/** The traps that leave the bytes as they came. */
function sparing({ traps }: Target): readonly string[] {
  return traps.filter((trap) => trap.startsWith("exact"));
}

/** The traps after which the bytes are gone. */
function spoiling({ traps }: Target): readonly string[] {
  return traps.filter((trap) => !trap.startsWith("exact"));
}
