import { request as httpRequest, type IncomingMessage } from "node:http";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express5 from "express";
import express4 from "express4";
import { afterEach, describe, expect, it } from "vitest";
import {
  closeMerchants,
  listen,
  type MerchantOptions,
  type MerchantServer,
  PATHS,
  requestOf,
  startMerchant,
} from "../../../test/e2e/merchant-server.ts";
import { exchange, type HeaderLines, request, Wire } from "../../../test/e2e/wire.ts";

afterEach(closeMerchants);

const RECEIVED = '200 {"received":true}';
const JSON_TYPE: HeaderLines = [["Content-Type", "application/json"]];
const path = PATHS.payments;

const read = async (wire: Wire): Promise<string> => {
  const { status, body } = await wire.answer();
  return `${status} ${body}`;
};

describe.each([
  ["Express 5", express5],
  ["Express 4", express4],
])("%s", (_version, express) => {
  const start = (options: Omit<MerchantOptions, "app"> = {}): Promise<MerchantServer> =>
    startMerchant({
      ...options,
      app: (receiver) =>
        express()
          .use(PATHS.payments, paymentCallbacks(receiver))
          .use(PATHS.connect, connectWebhooks(receiver)),
    });

  it("keeps a connection in use after every answer that leaves nothing unread", async () => {
    const t = await start();
    const wire = await Wire.open(t.port);
    const good = t.callback();
    const { signature: _, ...unsigned } = JSON.parse(Buffer.from(good.rawBody).toString()) as Record<
      string,
      unknown
    >;
    const exchanges: [Uint8Array, string][] = [
      [requestOf(path, good), RECEIVED],
      [
        requestOf(path, { ...good, rawBody: Buffer.from(JSON.stringify(unsigned)) }),
        '401 {"error":{"code":"ERR_SIGNATURE_MISSING"}}',
      ],
      [
        request("POST", path, [["Content-Type", "text/plain"]], Buffer.alloc(100_000, "x")),
        '415 {"error":{"code":"ERR_CONTENT_TYPE"}}',
      ],
      [request("PUT", path, JSON_TYPE, Buffer.from("{}")), '405 {"error":{"code":"ERR_METHOD_NOT_ALLOWED"}}'],
      [
        request("POST", path, JSON_TYPE, Buffer.from("no JSON")),
        '400 {"error":{"code":"ERR_BODY_NOT_JSON"}}',
      ],
      [
        request("POST", PATHS.connect, JSON_TYPE, Buffer.from("{}")),
        '400 {"error":{"code":"ERR_SIGNATURE_MISSING"}}',
      ],
      [requestOf(PATHS.connect, t.webhook()), RECEIVED],
      [requestOf(path, good), RECEIVED],
    ];
    for (const [bytes, answer] of exchanges) {
      await wire.write(bytes);
      expect(await read(wire)).toBe(answer);
    }
    wire.destroy();
  });

  it("answers pipelined requests in their order", async () => {
    const t = await start();
    const wire = await Wire.open(t.port);
    const [first, second] = [t.callback(), t.callback()];
    await wire.write(
      Buffer.concat([
        requestOf(path, first),
        request("GET", path, []),
        requestOf(path, second),
        requestOf(PATHS.connect, t.webhook()),
        request("POST", path, JSON_TYPE, Buffer.from("[]")),
        requestOf(path, first),
      ]),
    );
    const answers: string[] = [];
    for (let n = 0; n < 6; n++) answers.push((await read(wire)).slice(0, 3));
    expect(answers).toEqual(["200", "405", "200", "200", "400", "200"]);
    await t.until(({ type }) => type === "finished", 3);
    await t.until(({ type }) => type === "duplicate");
    wire.destroy();
  });

  it("puts a body together that arrives byte by byte", async () => {
    const t = await start();
    const wire = await Wire.open(t.port);
    for (const byte of requestOf(path, t.callback({ message: "Überwiesen ✓" })))
      await wire.write(Uint8Array.of(byte));
    expect(await read(wire)).toBe(RECEIVED);
    await t.until(({ type }) => type === "finished");
    wire.destroy();
  });

  it("asks for the body of a sender who expects that", async () => {
    const t = await start();
    const { rawBody, headers } = t.callback();
    const wire = await Wire.open(t.port);
    const expecting = [
      ...Object.entries(headers),
      ["Expect", "100-continue"],
      ["Content-Length", String(rawBody.byteLength)],
    ] as const;
    await wire.write(request("POST", path, expecting));
    expect((await wire.answer()).status).toBe(100);
    await wire.write(rawBody);
    expect(await read(wire)).toBe(RECEIVED);
    wire.destroy();
  });

  describe("senders that go away", () => {
    it("in the middle of the body: nothing is accepted, and nothing stays behind", async () => {
      const t = await startMerchant({ app: (receiver) => express().use(path, paymentCallbacks(receiver)) });
      const bytes = requestOf(path, t.callback());
      for (let n = 1; n <= 20; n++) {
        const wire = await Wire.open(t.port);
        await wire.write(bytes.subarray(0, bytes.byteLength - n));
        wire.destroy();
      }
      await t.until((notice) => notice.type === "refused" && notice.code === "ERR_BODY_INCOMPLETE", 20);
      expect(t.notices.some(({ type }) => type === "accepted")).toBe(false);
      expect((await exchange(t.port, bytes)).status).toBe(200);
    });

    it("before the answer: the accepted event runs, and the server goes on", async () => {
      let release = (): void => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      const t = await start({
        receiver: () => ({ ack: "handled" }),
        register: (receiver) => receiver.onDeposit(() => gate),
      });
      const bytes = requestOf(path, t.callback());
      const wire = await Wire.open(t.port);
      await wire.write(bytes);
      await t.until(({ type }) => type === "started");
      wire.destroy();
      await wire.closed;
      release();
      await t.until(({ type }) => type === "finished");
      expect((await exchange(t.port, bytes)).status).toBe(200);
    });

    it("leave no socket open", async () => {
      const t = await startMerchant();
      const { port, server } = await listen(express().use(path, paymentCallbacks(t.receiver)));
      const closed = new Promise<void>((resolve) => {
        server.once("connection", (socket) => socket.once("close", () => resolve()));
      });
      const wire = await Wire.open(port);
      await wire.write(request("POST", path, [...JSON_TYPE, ["Content-Length", "100"]], Buffer.from("{")));
      wire.destroy();
      await closed;
      expect(await new Promise((resolve) => server.getConnections((_error, count) => resolve(count)))).toBe(
        0,
      );
    });
  });

  describe("bodies over the bound", () => {
    const TOO_LARGE = '413 {"error":{"code":"ERR_BODY_TOO_LARGE"}}';
    const MEGABYTE = Buffer.alloc(1024 * 1024, " ");

    it.each([
      ["a length that says so", [["Content-Length", String(16 * MEGABYTE.byteLength)]]],
      ["chunks", [["Transfer-Encoding", "chunked"]]],
    ] as [string, HeaderLines][])(
      "answers a sender that reads only once all is sent: %s",
      async (_how, framing) => {
        const t = await start();
        const wire = await Wire.open(t.port);
        void wire.write(request("POST", path, [...JSON_TYPE, ...framing]));
        const isChunked = framing[0]?.[0] === "Transfer-Encoding";
        for (let n = 0; n < 16; n++) {
          if (isChunked) void wire.write(Buffer.from(`${MEGABYTE.byteLength.toString(16)}\r\n`));
          expect(await wire.write(MEGABYTE)).toBe(true);
          if (isChunked) void wire.write(Buffer.from("\r\n"));
        }
        if (isChunked) void wire.write(Buffer.from("0\r\n\r\n"));
        expect(await read(wire)).toBe(TOO_LARGE);
        await wire.closed;
        expect(wire.rest).toBe("");
      },
    );

    it.each([
      ["a length", [["Content-Length", String(2 ** 40)]], MEGABYTE],
      [
        "chunks",
        [["Transfer-Encoding", "chunked"]],
        Buffer.concat([
          Buffer.from(`${MEGABYTE.byteLength.toString(16)}\r\n`),
          MEGABYTE,
          Buffer.from("\r\n"),
        ]),
      ],
    ] as [string, HeaderLines, Buffer][])(
      "answers a sender that never stops, and closes the connection: %s",
      async (_how, framing, part) => {
        const t = await start();
        const wire = await Wire.open(t.port);
        void wire.write(request("POST", path, [...JSON_TYPE, ...framing]));
        let closed = false;
        const end = wire.closed.then(() => {
          closed = true;
        });
        const sending = (async () => {
          while (!closed && (await wire.write(part)));
        })();
        const answer = await wire.answer();
        expect(`${answer.status} ${answer.body}`).toBe(TOO_LARGE);
        expect(answer.headers.get("connection")).toBe("close");
        await end;
        await sending;
      },
    );

    it("closes the connection of a sender that falls silent", async () => {
      const t = await start();
      const wire = await Wire.open(t.port);
      void wire.write(request("POST", path, [...JSON_TYPE, ["Content-Length", "100000"]]));
      expect(await read(wire)).toBe(TOO_LARGE);
      await wire.closed;
    });

    it("shows the answer to Node's own client", async () => {
      const t = await start();
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const outgoing = httpRequest({
          port: t.port,
          path,
          method: "POST",
          headers: { "content-type": "application/json" },
        });
        outgoing.once("response", resolve).once("error", reject);
        for (let n = 0; n < 16; n++) outgoing.write(MEGABYTE);
        outgoing.end();
      });
      let body = "";
      for await (const part of response) body += part;
      expect(`${response.statusCode} ${body}`).toBe(TOO_LARGE);
    });
  });

  describe("odd headers", () => {
    it.each<[string, (signature: string) => HeaderLines, string]>([
      ["once", (signature) => [["X-Connect-Signature", signature]], RECEIVED],
      ["in any case", (signature) => [["x-CONNECT-signature", signature]], RECEIVED],
      [
        "with white space around it, which HTTP takes away",
        (signature) => [["X-Connect-Signature", ` \t${signature} `]],
        RECEIVED,
      ],
      ["not at all", () => [], '400 {"error":{"code":"ERR_SIGNATURE_MISSING"}}'],
      ["empty", () => [["X-Connect-Signature", ""]], '400 {"error":{"code":"ERR_SIGNATURE_MISSING"}}'],
      [
        "twice",
        (signature) => [
          ["X-Connect-Signature", signature],
          ["X-Connect-Signature", signature],
        ],
        '400 {"error":{"code":"ERR_SIGNATURE_MALFORMED"}}',
      ],
      [
        "twice, the second wrong",
        (signature) => [
          ["X-Connect-Signature", signature],
          ["X-Connect-Signature", `sha256=${"0".repeat(64)}`],
        ],
        '400 {"error":{"code":"ERR_SIGNATURE_MALFORMED"}}',
      ],
      [
        "in upper-case digits",
        (signature) => [["X-Connect-Signature", signature.toUpperCase().replace("SHA256", "sha256")]],
        '400 {"error":{"code":"ERR_SIGNATURE_MALFORMED"}}',
      ],
      [
        "without its prefix",
        (signature) => [["X-Connect-Signature", signature.slice(7)]],
        '400 {"error":{"code":"ERR_SIGNATURE_MALFORMED"}}',
      ],
    ])("X-Connect-Signature %s", async (_how, headers, expected) => {
      const t = await start();
      const delivery = t.webhook();
      const signature = delivery.headers["x-connect-signature"] ?? "";
      const bytes = request("POST", PATHS.connect, [...JSON_TYPE, ...headers(signature)], delivery.rawBody);
      const { status, body } = await exchange(t.port, bytes);
      expect(`${status} ${body}`).toBe(expected);
    });

    it("a payment callback's signature is in its body: a header changes nothing", async () => {
      const t = await start();
      const bytes = requestOf(path, t.callback(), [["X-Connect-Signature", "sha256=nonsense"]]);
      expect((await exchange(t.port, bytes)).status).toBe(200);
    });
  });
});
