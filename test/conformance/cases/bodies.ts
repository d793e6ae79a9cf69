/** How a body comes over the wire, what it must be, and how large it may be. */
import { chunked, request, Wire } from "../../e2e/wire.ts";
import { BOUNDED, CONNECT_PATH, PAYMENT_PATHS } from "../application.ts";
import { type Case, RECEIVED, refused, refusedAs } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { AS_JSON, bytesOf, IN_CHUNKS, JSON_TYPE, one } from "../sending.ts";

const { plain: PAY, bounded: BOUNDED_PAY } = PAYMENT_PATHS;
const MEGABYTE = Buffer.alloc(1024 * 1024, " ");
const MEGABYTES = 4;

export function bodyCases(deliveries: Deliveries): readonly Case[] {
  const inChunks = deliveries.webhook();
  const slowly = deliveries.webhook();
  const padded = deliveries.payment();
  const empty = deliveries.webhook("");
  const padding = Buffer.alloc(BOUNDED.maxBodyBytes - padded.rawBody.byteLength, " ");
  return [
    {
      name: "chunked",
      send: one(
        request(
          "POST",
          CONNECT_PATH,
          [...Object.entries(inChunks.headers), IN_CHUNKS],
          chunked([
            inChunks.rawBody.subarray(0, 1),
            inChunks.rawBody.subarray(1, 90),
            inChunks.rawBody.subarray(90),
          ]),
        ),
      ),
      answers: [RECEIVED],
      effects: deliveries.ranOnce(inChunks),
    },
    {
      name: "byte by byte",
      async send({ port }) {
        const wire = await Wire.open(port);
        for (const byte of bytesOf(CONNECT_PATH, slowly)) await wire.write(Uint8Array.of(byte));
        const answer = await wire.answer();
        wire.destroy();
        return [answer];
      },
      answers: [RECEIVED],
      effects: deliveries.ranOnce(slowly),
    },
    refusedAs("empty body, signed", 400, "ERR_BODY_NOT_JSON", [
      bytesOf(CONNECT_PATH, empty),
      request("POST", CONNECT_PATH, Object.entries(empty.headers)),
      request("POST", CONNECT_PATH, [...Object.entries(empty.headers), IN_CHUNKS], chunked([])),
      bytesOf(PAY, { rawBody: Buffer.alloc(0), headers: { "content-type": JSON_TYPE } }),
    ]),
    refusedAs(
      "JSON that is no object",
      400,
      "ERR_BODY_NOT_JSON",
      ["[]", "null", '"text"', "7", "{", ""].map((text) => bytesOf(CONNECT_PATH, deliveries.webhook(text))),
    ),
    {
      name: "a body of exactly the bound",
      send: one(bytesOf(BOUNDED_PAY, { ...padded, rawBody: Buffer.concat([padded.rawBody, padding]) })),
      answers: [RECEIVED],
      effects: deliveries.ranOnce(padded),
    },
    refusedAs("one byte over the bound, as a length and in chunks", 413, "ERR_BODY_TOO_LARGE", [
      request("POST", BOUNDED_PAY, AS_JSON, Buffer.alloc(BOUNDED.maxBodyBytes + 1, " ")),
      request(
        "POST",
        BOUNDED_PAY,
        [...AS_JSON, IN_CHUNKS],
        chunked([Buffer.alloc(BOUNDED.maxBodyBytes, " "), Buffer.from(" ")]),
      ),
    ]),
    farOverTheBound(["Content-Length", String(MEGABYTES * MEGABYTE.byteLength)]),
    farOverTheBound(IN_CHUNKS),
    {
      name: "a body that never comes to its end",
      async send({ port }) {
        const wire = await Wire.open(port);
        const headers = [...AS_JSON, ["Content-Length", "1000"]] as const;
        await wire.write(request("POST", BOUNDED_PAY, headers, Buffer.from('{"event":')));
        const answer = await wire.answer();
        wire.destroy();
        return [answer];
      },
      answers: [refused(408, "ERR_BODY_TIMEOUT")],
      effects: ["refused 408 ERR_BODY_TIMEOUT"],
    },
  ];
}

/** A sender that reads its answer only once it has sent everything. The header says how long the body is. */
function farOverTheBound(length: readonly [name: string, value: string]): Case {
  const isChunked = length === IN_CHUNKS;
  return {
    name: `far over the bound, read only once all is sent: ${length[0]}`,
    async send({ port }) {
      const wire = await Wire.open(port);
      void wire.write(request("POST", BOUNDED_PAY, [...AS_JSON, length]));
      for (let n = 0; n < MEGABYTES; n++) {
        if (isChunked) await wire.write(Buffer.from(`${MEGABYTE.byteLength.toString(16)}\r\n`));
        await wire.write(MEGABYTE);
        if (isChunked) await wire.write(Buffer.from("\r\n"));
      }
      if (isChunked) await wire.write(Buffer.from("0\r\n\r\n"));
      const answer = await wire.answer();
      wire.destroy();
      return [answer];
    },
    answers: [refused(413, "ERR_BODY_TOO_LARGE")],
    effects: ["refused 413 ERR_BODY_TOO_LARGE"],
  };
}
