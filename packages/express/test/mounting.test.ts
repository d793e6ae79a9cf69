import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import { callbackFields, fakeClock, forgedCallback, signPaymentCallback } from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express5, { type ErrorRequestHandler, type Express } from "express";
import express4 from "express4";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  closeMerchants,
  listen,
  PATHS,
  registerAll,
  requestOf,
  SECRET,
  startMerchant,
  testKeys,
} from "../../../test/e2e/merchant-server.ts";
import { exchange, request } from "../../../test/e2e/wire.ts";

afterEach(closeMerchants);

const only = (answer: { status: number; body: string }): string => `${answer.status} ${answer.body}`;
const RECEIVED = '200 {"received":true}';

describe.each([
  ["Express 5", express5],
  ["Express 4", express4],
])("%s", (_version, express) => {
  it.each<[string, string, (app: Express, receiver: Receiver) => unknown]>([
    ["app.use", "/hooks", (app, receiver) => app.use("/hooks", paymentCallbacks(receiver))],
    [
      "app.use, deeper",
      "/hooks/pay?from=service",
      (app, receiver) => app.use("/hooks", paymentCallbacks(receiver)),
    ],
    ["app.use without a path", "/", (app, receiver) => app.use(paymentCallbacks(receiver))],
    ["app.post", "/hooks", (app, receiver) => app.post("/hooks", paymentCallbacks(receiver))],
    ["app.all", "/hooks", (app, receiver) => app.all("/hooks", paymentCallbacks(receiver))],
    ["app.route", "/hooks", (app, receiver) => app.route("/hooks").post(paymentCallbacks(receiver))],
    [
      "a mounted router",
      "/api/v1/hooks/pay",
      (app, receiver) => {
        const inner = express.Router();
        inner.post("/pay", paymentCallbacks(receiver));
        app.use("/api/:version", express.Router().use("/hooks", inner));
      },
    ],
    [
      "a mounted application",
      "/api/hooks",
      (app, receiver) => app.use("/api", express().use("/hooks", paymentCallbacks(receiver))),
    ],
  ])("serves where it is mounted with %s", async (_how, path, mount) => {
    const t = await startMerchant({
      app: (receiver) => {
        const app = express();
        mount(app, receiver);
        return app;
      },
    });
    expect(only(await exchange(t.port, requestOf(path, t.callback())))).toBe(RECEIVED);
    await t.until(({ type }) => type === "finished");
  });

  it("leaves other paths, and other methods under app.post, to the application", async () => {
    const t = await startMerchant({
      app: (receiver) =>
        express()
          .post("/hooks", paymentCallbacks(receiver))
          .use((_request, response) => void response.status(404).send("mine")),
    });
    expect(only(await exchange(t.port, requestOf("/other", t.callback())))).toBe("404 mine");
    expect(only(await exchange(t.port, request("GET", "/hooks", [])))).toBe("404 mine");
  });

  it.each([
    ["payments", { connect: { secret: SECRET } }, paymentCallbacks],
    ["connect", { payments: { publicKey: "never read" } }, connectWebhooks],
  ] as const)("throws at the mounting of %s when that flow is off", (flow, options, mount) => {
    const receiver = createReceiver(options);
    expect(() => mount(receiver)).toThrow(
      expect.objectContaining({
        code: "ERR_FLOW_OFF",
        message: expect.stringContaining(`The ${flow} flow is off`),
      }),
    );
  });

  it.each([
    ["another encoding", "latin1"],
    ["a parser that writes it anew", "utf8"],
  ] as const)(
    "does not take a text for the body that differs from the sent bytes: %s",
    async (_, encoding) => {
      const t = await startMerchant({
        app: (receiver) =>
          express()
            .use(
              express.json({
                verify: (request, _response, body) => {
                  const text = body.toString(encoding);
                  const rawBody = encoding === "utf8" ? JSON.stringify(JSON.parse(text)) : text;
                  Object.assign(request, { rawBody });
                },
              }),
            )
            .use(paymentCallbacks(receiver)),
      });
      const { rawBody, headers } = t.callback({ message: "ክፍያ" });
      const spaced = { headers, rawBody: Buffer.from(rawBody.toString().replace("{", "{ ")) };
      expect(only(await exchange(t.port, requestOf("/", spaced)))).toContain("ERR_BODY_CONSUMED");
      const whys = t.notices.flatMap((notice) => (notice.type === "refused" ? [notice.why] : []));
      expect(whys).toEqual([expect.stringContaining("kept the body as text")]);
      expect(only(await exchange(t.port, requestOf("/", t.callback({ message: "ok" }))))).toBe(RECEIVED);
    },
  );

  it("serves the first delivery when it is mounted on a server that runs", async () => {
    const app = express();
    const { port } = await listen(app);
    const clock = fakeClock();
    const receiver = createReceiver({
      payments: { publicKey: testKeys().publicKey },
      inbox: memoryInbox({ clock }),
      clock,
    });
    registerAll(receiver);
    const delivery = signPaymentCallback(callbackFields({}, clock.now()), testKeys().privateKey);
    // The turn after the mounting is not over when the bytes of this one arrive.
    const answer = exchange(port, requestOf("/", delivery));
    app.use(paymentCallbacks(receiver));
    expect(only(await answer)).toBe(RECEIVED);
    await receiver.close();
  });

  it("hands the request to the tenant option, and its answer to the resolver", async () => {
    const hints: unknown[] = [];
    const t = await startMerchant({
      receiver: () => ({
        payments: {
          publicKey: (hint) => {
            hints.push(hint);
            return hint.tenant === "shop-7" ? { tenant: "shop-7", keys: testKeys().publicKey } : null;
          },
        },
      }),
      app: (receiver) =>
        express().post(
          "/:shop/pay",
          paymentCallbacks(receiver, { tenant: (incoming) => String(incoming.params.shop) }),
        ),
    });
    const delivery = t.callback();
    expect(only(await exchange(t.port, requestOf("/shop-7/pay", delivery)))).toBe(RECEIVED);
    const stranger = await exchange(t.port, requestOf("/shop-8/pay", delivery));
    expect(only(stranger)).toBe('401 {"error":{"code":"ERR_SIGNATURE_INVALID"}}');
    const { merchantId } = callbackFields();
    expect(hints).toEqual([
      { tenant: "shop-7", merchantId },
      { tenant: "shop-8", merchantId },
    ]);
    await t.until((notice) => notice.type === "accepted" && notice.tenant === "shop-7");
  });

  it.each([
    ["the peer's, unless told otherwise", false, "127.0.0.1"],
    ["the sender's, behind a trusted proxy", true, "203.0.113.9"],
  ])("knows the address of who fails: %s", async (_whose, trust, address) => {
    const t = await startMerchant({
      app: (receiver) => express().set("trust proxy", trust).use(PATHS.payments, paymentCallbacks(receiver)),
    });
    const forged = forgedCallback(
      callbackFields({}, t.clock.now()),
      { amount: "9999.000000" },
      testKeys().privateKey,
    );
    const bytes = requestOf(PATHS.payments, forged, [["X-Forwarded-For", "203.0.113.9"]]);
    for (let n = 0; n < 10; n++) {
      expect((await exchange(t.port, requestOf(PATHS.payments, t.callback()))).status).toBe(200);
      expect((await exchange(t.port, bytes)).status).toBe(401);
    }
    await t.until(({ type }) => type === "alert");
    expect(t.notices.find(({ type }) => type === "refused")).toMatchObject({ address });
    expect(t.notices.find(({ type }) => type === "alert")).toMatchObject({
      kind: "probing",
      address,
      failures: 10,
    });
    expect(
      (await exchange(t.port, request("GET", PATHS.payments, [["X-Forwarded-For", "203.0.113.9"]]))).status,
    ).toBe(405);
    await t.until(
      (notice) =>
        notice.type === "refused" && notice.code === "ERR_METHOD_NOT_ALLOWED" && notice.address === address,
    );
  });

  describe("an error of the application itself goes to the framework", () => {
    /** Shows an error as the application would. */
    const show: ErrorRequestHandler = (error, _request, response, _next) =>
      void response.status(500).send(`caught: ${(error as Error).message}`);

    it("a tenant option that throws", async () => {
      const tenant = (): string => {
        throw new Error("no such shop");
      };
      const t = await startMerchant({
        app: (receiver) => express().use(paymentCallbacks(receiver, { tenant })).use(show),
      });
      expect(only(await exchange(t.port, requestOf("/", t.callback())))).toBe("500 caught: no such shop");
    });

    it("a factory that fails, until it does not", async () => {
      const clock = fakeClock();
      let calls = 0;
      const logged = vi.spyOn(console, "error").mockImplementation(() => {});
      try {
        const receiver = createReceiver({
          payments: { publicKey: testKeys().publicKey },
          inbox: memoryInbox({ clock }),
          clock,
        });
        registerAll(receiver);
        const factory = async (): Promise<Receiver> => {
          calls++;
          if (calls < 3) throw new Error("the secret store is down");
          return receiver;
        };
        const { port } = await listen(express().use(paymentCallbacks(factory)).use(show));
        const bytes = requestOf(
          "/",
          signPaymentCallback(callbackFields({}, clock.now()), testKeys().privateKey),
        );
        expect(only(await exchange(port, bytes))).toBe("500 caught: the secret store is down");
        expect(only(await exchange(port, bytes))).toBe(RECEIVED);
        expect(only(await exchange(port, bytes))).toBe(RECEIVED);
        expect(calls).toBe(3);
        expect(logged).toHaveBeenCalledTimes(1);
        expect(String(logged.mock.calls[0]?.[0])).toContain("no receiver was made; this is tried again");
        await receiver.close();
      } finally {
        logged.mockRestore();
      }
    });
  });

  it("says nothing more where something else has answered meanwhile", async () => {
    let answerNow = (): unknown => undefined;
    const errors: unknown[] = [];
    const collect: ErrorRequestHandler = (error, _request, _response, _next) => void errors.push(error);
    const t = await startMerchant({
      receiver: () => ({ ack: "handled" }),
      register: (receiver) => receiver.onDeposit(() => void answerNow()),
      app: (receiver) =>
        express()
          .use((_request, response, next) => {
            answerNow = () => response.status(504).send("too slow");
            next();
          })
          .use(paymentCallbacks(receiver))
          .use(collect),
    });
    const bytes = requestOf("/", t.callback());
    expect(only(await exchange(t.port, bytes))).toBe("504 too slow");
    await t.until(({ type }) => type === "finished");
    expect(only(await exchange(t.port, bytes))).toBe(RECEIVED);
    expect(errors).toEqual([]);
  });
});
