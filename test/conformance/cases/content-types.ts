/** Content types and content encodings. */
import { gzipSync } from "node:zlib";
import { request } from "../../e2e/wire.ts";
import { CONNECT_PATH } from "../application.ts";
import { type Case, RECEIVED, refusedAs } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { bytesOf, inTurn, JSON_TYPE, times, without } from "../sending.ts";

const OTHER_TYPES = [
  "",
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/jsonp",
  "json",
  ";",
];
const REPEATED_TYPES = [
  [JSON_TYPE, JSON_TYPE],
  [JSON_TYPE, "text/plain"],
  ["application/json; charset=utf-8", "text/plain"],
];
const JSON_TYPES = [
  "application/json",
  "application/json; charset=utf-8",
  "application/vnd.pay+json",
  "APPLICATION/JSON ; foo",
];

export function contentTypeCases(deliveries: Deliveries): readonly Case[] {
  const asJson = JSON_TYPES.map((type) => ({ type, delivery: deliveries.webhook() }));
  return [
    refusedAs("content type missing, empty, or another", 415, "ERR_CONTENT_TYPE", [
      request(
        "POST",
        CONNECT_PATH,
        without("content-type", deliveries.webhook()),
        deliveries.webhook().rawBody,
      ),
      ...OTHER_TYPES.map((type) =>
        request("POST", CONNECT_PATH, [["Content-Type", type]], deliveries.webhook().rawBody),
      ),
    ]),
    refusedAs(
      "content type repeated",
      415,
      "ERR_CONTENT_TYPE",
      REPEATED_TYPES.map((types) =>
        // Without a signature. So a server that shows only one of the values refuses the delivery all the same.
        request(
          "POST",
          CONNECT_PATH,
          types.map((type) => ["Content-Type", type] as const),
          deliveries.webhook().rawBody,
        ),
      ),
    ),
    {
      name: "content types that are JSON",
      send: inTurn(
        asJson.map(({ type, delivery }) =>
          request(
            "POST",
            CONNECT_PATH,
            [["Content-Type", type], ...without("content-type", delivery)],
            delivery.rawBody,
          ),
        ),
      ),
      answers: times(asJson.length, RECEIVED),
      effects: asJson.flatMap(({ delivery }) => deliveries.ranOnce(delivery)),
    },
    refusedAs("gzip, and other encodings", 415, "ERR_CONTENT_ENCODING", [
      bytesOf(CONNECT_PATH, { ...deliveries.webhook(), rawBody: gzipSync(deliveries.webhook().rawBody) }, [
        ["Content-Encoding", "gzip"],
      ]),
      bytesOf(CONNECT_PATH, deliveries.webhook(), [["Content-Encoding", "br"]]),
    ]),
  ];
}
