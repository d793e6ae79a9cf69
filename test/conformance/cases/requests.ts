/** Methods, queries, and parameters of the path. */
import { request, Wire } from "../../e2e/wire.ts";
import { PAYMENT_PATHS } from "../application.ts";
import { type Case, refused, refusedAs } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { AS_JSON, bytesOf, JSON_TYPE, one } from "../sending.ts";

const PAY = PAYMENT_PATHS.plain;

export function requestCases(deliveries: Deliveries): readonly Case[] {
  return [
    refusedAs("wrong method", 405, "ERR_METHOD_NOT_ALLOWED", [
      request("GET", PAY, []),
      request("PUT", PAY, AS_JSON, deliveries.payment().rawBody),
      request("PATCH", PAY, AS_JSON, deliveries.payment().rawBody),
      request("DELETE", PAY, []),
    ]),
    {
      name: "HEAD",
      async send({ port }) {
        const wire = await Wire.open(port);
        await wire.write(request("HEAD", PAY, []));
        const answer = await wire.answer({ bodiless: true });
        wire.destroy();
        return [answer];
      },
      answers: [`405 ${JSON_TYPE} allow: POST`],
      effects: ["refused 405 ERR_METHOD_NOT_ALLOWED"],
    },
    {
      name: "OPTIONS",
      send: one(request("OPTIONS", PAY, [])),
      answers: [refused(405, "ERR_METHOD_NOT_ALLOWED")],
      effects: ["refused 405 ERR_METHOD_NOT_ALLOWED"],
    },
    deliveries.accepted(
      "an encoded query after the path",
      `${PAY}?from=a%26b%3D%20c&${encodeURIComponent("💳")}=%00`,
      deliveries.payment(),
    ),
    deliveries.accepted(
      "a parameter of the path names the tenant",
      "/shops/shop%2D7/pay?x=%2F",
      deliveries.payment(),
      "shop-7",
    ),
    refusedAs("a tenant that nobody knows", 401, "ERR_SIGNATURE_INVALID", [
      bytesOf("/shops/shop-8/pay", deliveries.payment()),
    ]),
  ];
}
