import { type SignedDelivery, signConnectWebhook } from "@payhooks/core/testing";
import { captureRawBody, connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express5, { type RequestHandler } from "express";
import express4 from "express4";
import { afterEach, describe, expect, it } from "vitest";
import {
  closeMerchants,
  type MerchantServer,
  PATHS,
  SECRET,
  startMerchant,
} from "../../../test/e2e/merchant-server.ts";
import { chunked, exchange, request } from "../../../test/e2e/wire.ts";

afterEach(closeMerchants);

const RECEIVED = '200 {"received":true}';
const GONE = '500 {"error":{"code":"ERR_BODY_CONSUMED"}}';
const FLOWS = ["payments", "connect"] as const;

describe.each([
  ["Express 5", express5],
  ["Express 4", express4],
])("%s", (_version, express) => {
  /** A merchant with this above Payhooks, for all paths. */
  const startBelow = (...above: RequestHandler[]): Promise<MerchantServer> =>
    startMerchant({
      app: (receiver) => {
        const app = express();
        for (const handler of above) app.use(handler);
        app.use(PATHS.payments, paymentCallbacks(receiver));
        app.use(PATHS.connect, connectWebhooks(receiver));
        return app;
      },
    });

  async function send(
    t: MerchantServer,
    flow: (typeof FLOWS)[number],
    delivery: SignedDelivery,
  ): Promise<string> {
    const { status, body } = await t.send(flow, delivery);
    return `${status} ${body}`;
  }

  /** Signed over bytes that no JSON.stringify would write again. */
  const oddlyWritten = (t: MerchantServer, flow: (typeof FLOWS)[number]): SignedDelivery => {
    const { rawBody, headers } = flow === "payments" ? t.callback({ message: "Überwiesen ✓" }) : t.webhook();
    const text = ` ${Buffer.from(rawBody).toString()}\r\n`
      .replace(/":"/g, '" : "')
      .replace("message", "\\u006dessage");
    return flow === "payments"
      ? { rawBody: Buffer.from(text), headers }
      : signConnectWebhook(Buffer.from(text), SECRET);
  };

  describe.each(FLOWS)("%s", (flow) => {
    it("takes the exact bytes when nothing stands above", async () => {
      const t = await startBelow();
      expect(await send(t, flow, oddlyWritten(t, flow))).toBe(RECEIVED);
      expect(await t.held()).toEqual([]);
    });

    it("answers 500 at once below express.json(), with the fix in the log", async () => {
      const t = await startBelow(express.json());
      expect(await send(t, flow, oddlyWritten(t, flow))).toBe(GONE);
      await t.until(({ type }) => type === "refused");
      expect(t.lines.join("\n")).toContain("app.use(express.json({ verify: captureRawBody }))");
      expect(t.lines.join("\n")).toContain("mount Payhooks above app.use(express.json())");
      expect(t.notices.some(({ type }) => type === "accepted")).toBe(false);
    });

    it.each([
      ["express.urlencoded() for every type", express.urlencoded({ type: "*/*", extended: true })],
      [
        "something that reads the stream by itself",
        (incoming, _response, next) => void incoming.resume().once("end", () => next()),
      ],
      [
        "something that began to read and stopped",
        (incoming, _response, next) => void incoming.once("data", () => next(incoming.pause() && undefined)),
      ],
      [
        "something that decodes the stream",
        (incoming, _response, next) => next(incoming.setEncoding("utf8") && undefined),
      ],
      [
        "something that keeps other bytes than came",
        (incoming, _response, next) =>
          express.json()(incoming, _response, () =>
            next(void Object.assign(incoming, { rawBody: Buffer.from(JSON.stringify(incoming.body)) })),
          ),
      ],
    ] as [string, RequestHandler][])("answers 500 below %s", async (_name, above) => {
      const t = await startBelow(above);
      expect(await send(t, flow, oddlyWritten(t, flow))).toBe(GONE);
    });

    it.each([
      ["express.text()", express.text({ type: "*/*" })],
      [
        "something that keeps text only",
        (incoming, _response, next) => {
          const parts: Buffer[] = [];
          incoming.on("data", (part: Buffer) => parts.push(part));
          incoming.once("end", () =>
            next(void Object.assign(incoming, { rawBody: Buffer.concat(parts).toString() })),
          );
        },
      ],
    ] as [string, RequestHandler][])(
      "takes text below %s if it is as long as Content-Length says",
      async (_name, above) => {
        const t = await startBelow(above);
        const delivery = oddlyWritten(t, flow);
        const headers = [...Object.entries(delivery.headers), ["Transfer-Encoding", "chunked"] as const];
        const { status, body } = await exchange(
          t.port,
          request("POST", PATHS[flow], headers, chunked([delivery.rawBody])),
        );
        expect(`${status} ${body}`).toBe(GONE);
        expect(await send(t, flow, delivery)).toBe(RECEIVED);
      },
    );

    it.each([
      ["express.json() with captureRawBody", express.json({ verify: captureRawBody })],
      ["express.raw()", express.raw({ type: "application/json" })],
      ["express.urlencoded(), which leaves JSON alone", express.urlencoded({ extended: true })],
      ["express.text(), which leaves JSON alone", express.text()],
      [
        "something that keeps bytes as a Uint8Array",
        express.json({
          verify: (incoming, _response, body) =>
            void Object.assign(incoming, { rawBody: Uint8Array.from(body) }),
        }),
      ],
      [
        "something that takes its time",
        (_request, _response, next) => void setImmediate(() => setImmediate(next)),
      ],
      [
        "something that listens in",
        (incoming, _response, next) => next(incoming.on("close", () => {}) && undefined),
      ],
    ] as [string, RequestHandler][])("takes the exact bytes below %s", async (_name, above) => {
      const t = await startBelow(above);
      const delivery = oddlyWritten(t, flow);
      expect(await send(t, flow, delivery)).toBe(RECEIVED);
      const headers = [...Object.entries(delivery.headers), ["Transfer-Encoding", "chunked"] as const];
      const halves = [delivery.rawBody.subarray(0, 7), delivery.rawBody.subarray(7)];
      const { status, body } = await exchange(t.port, request("POST", PATHS[flow], headers, chunked(halves)));
      expect(`${status} ${body}`).toBe(RECEIVED);
      await t.until(({ type }) => type === "duplicate");
    });

    it("takes a JSON type that express.json() leaves alone", async () => {
      const t = await startBelow(express.json());
      const { rawBody, headers } = oddlyWritten(t, flow);
      const delivery = { rawBody, headers: { ...headers, "content-type": "application/vnd.pay+json" } };
      expect(await send(t, flow, delivery)).toBe(RECEIVED);
    });

    it.each([
      ["nothing", []],
      ["express.json()", [express.json()]],
      ["express.json() with captureRawBody", [express.json({ verify: captureRawBody })]],
      ["express.raw()", [express.raw({ type: "*/*" })]],
    ] as [string, RequestHandler[]][])(
      "knows an empty body below %s for what it is",
      async (_name, above) => {
        const t = await startBelow(...above);
        const empty = signConnectWebhook(Buffer.alloc(0), SECRET);
        const headers = Object.entries(empty.headers);
        const bodies = [
          request("POST", PATHS[flow], headers, Buffer.alloc(0)),
          request("POST", PATHS[flow], headers),
          request("POST", PATHS[flow], [...headers, ["Transfer-Encoding", "chunked"]], chunked([])),
        ];
        for (const bytes of bodies) {
          expect(await exchange(t.port, bytes)).toMatchObject({
            status: 400,
            body: '{"error":{"code":"ERR_BODY_NOT_JSON"}}',
          });
        }
      },
    );

    it("refuses what express.raw() has unpacked: the signature is not over those bytes", async () => {
      const t = await startBelow(express.raw({ type: "*/*" }));
      const { gzipSync } = await import("node:zlib");
      const { rawBody, headers } = oddlyWritten(t, flow);
      const packed = { rawBody: gzipSync(rawBody), headers: { ...headers, "content-encoding": "gzip" } };
      expect(await send(t, flow, packed)).toBe('415 {"error":{"code":"ERR_CONTENT_ENCODING"}}');
    });

    it("bounds what a parser has kept", async () => {
      const t = await startMerchant({
        receiver: () => ({ limits: { maxBodyBytes: 100 } }),
        app: (receiver) =>
          express()
            .use(express.raw({ type: "*/*" }))
            .use(PATHS[flow], { payments: paymentCallbacks, connect: connectWebhooks }[flow](receiver)),
      });
      const headers = [
        ["Content-Type", "application/json"],
        ["Transfer-Encoding", "chunked"],
      ] as const;
      const answer = await exchange(
        t.port,
        request("POST", PATHS[flow], headers, chunked([Buffer.alloc(101, " ")])),
      );
      expect(answer).toMatchObject({ status: 413, body: '{"error":{"code":"ERR_BODY_TOO_LARGE"}}' });
    });
  });
});
