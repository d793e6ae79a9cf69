/** Bodies that are right only to the byte. An adapter that decodes one, or writes it out again, breaks it. */

import { CONNECT_PATH, PAYMENT_PATHS } from "../application.ts";
import { type Case, RECEIVED, refusedAs } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { atOnce, bytesOf, JSON_TYPE, one, times } from "../sending.ts";

const PAY = PAYMENT_PATHS.plain;

export function exactBytesCases(deliveries: Deliveries): readonly Case[] {
  const cold = deliveries.payment();
  const eventText = (): string => JSON.stringify(deliveries.event());
  const indentedText = (): string => JSON.stringify(deliveries.event(), null, 2);
  return [
    {
      name: "first requests of a cold process, five copies at once",
      send: atOnce(bytesOf(PAY, cold), 5),
      answers: times(5, RECEIVED),
      effects: [...deliveries.ranOnce(cold), ...times(4, deliveries.duplicate(cold))],
    },
    deliveries.accepted("payment callback", PAY, deliveries.payment()),
    deliveries.accepted("connected-account webhook", CONNECT_PATH, deliveries.webhook()),
    deliveries.accepted(
      "text beyond ASCII, payment",
      PAY,
      deliveries.payment({ message: "Überwiesen ✓ ክፍያ 💳" }),
    ),
    deliveries.accepted(
      "text beyond ASCII, webhook",
      CONNECT_PATH,
      deliveries.webhookWith('"note":"ክፍያ 💳 é"'),
    ),
    refusedAs("byte order mark", 400, "ERR_BODY_NOT_JSON", [
      bytesOf(CONNECT_PATH, deliveries.webhook(`\uFEFF${eventText()}`)),
    ]),
    refusedAs("invalid UTF-8", 400, "ERR_BODY_NOT_JSON", [
      bytesOf(
        CONNECT_PATH,
        deliveries.webhook(
          Buffer.concat([
            Buffer.from('{"event":"settlement.approved","x":"'),
            Buffer.of(0xc3, 0x28),
            Buffer.from('"}'),
          ]),
        ),
      ),
    ]),
    deliveries.accepted(
      "white space and CRLF inside and around",
      CONNECT_PATH,
      deliveries.webhook(`\r\n\t ${indentedText().replaceAll("\n", "\r\n")} \r\n\r\n`),
    ),
    deliveries.accepted("a line's end after the body", CONNECT_PATH, deliveries.webhook(`${eventText()}\n`)),
    deliveries.accepted("10.0 stays 10.0, webhook", CONNECT_PATH, deliveries.webhookWith('"fee":10.0')),
    deliveries.accepted(
      "exponents, minus zero, big integers, webhook",
      CONNECT_PATH,
      deliveries.webhookWith('"a":1e2,"b":-0,"c":12345678901234567890123'),
    ),
    signedNumber("number 10.0 in a signed payment", "10.0", deliveries),
    signedNumber("number beyond 2^53 in a signed payment", "12345678901234567890123", deliveries),
    deliveries.accepted(
      "escapes that nobody writes",
      CONNECT_PATH,
      deliveries.webhook(
        eventText()
          .replace('"event"', '"\\u0065vent"')
          .replace("settlement.approved", "settlement\\u002eapproved"),
      ),
    ),
    {
      name: "duplicate names, webhook",
      send: one(bytesOf(CONNECT_PATH, deliveries.webhookWith('"event":"settlement.declined"'))),
      answers: [RECEIVED],
      effects: ["held malformed"],
    },
    paymentWithTwoAmounts(deliveries),
  ];
}

/** A payment with a number in it, signed as it is written. */
function signedNumber(name: string, raw: string, deliveries: Deliveries): Case {
  const fields = deliveries.sent(deliveries.fields());
  // The name is undocumented, and stands where no optional field may end with it.
  const canonical = Object.entries({ ...fields, discount: raw })
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([field, value]) => `${field}=${value}`)
    .join("&");
  const signed = JSON.stringify({ ...fields, signature: deliveries.signatureOf(canonical) });
  const rawBody = Buffer.from(signed.replace(/\}$/, `,"discount":${raw}}`));
  return deliveries.accepted(name, PAY, { rawBody, headers: { "content-type": JSON_TYPE } });
}

function paymentWithTwoAmounts(deliveries: Deliveries): Case {
  const genuine = deliveries.payment();
  const amount = deliveries.nameOf("amount");
  const rawBody = Buffer.from(genuine.rawBody.toString().replace("{", `{"${amount}":"99999.000000",`));
  return {
    name: "duplicate names, payment",
    send: one(bytesOf(PAY, { ...genuine, rawBody })),
    answers: [RECEIVED],
    // The signed value is the last of the two.
    effects: deliveries.ranOnce(genuine),
  };
}
