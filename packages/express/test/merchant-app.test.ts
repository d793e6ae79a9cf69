/** How a merchant tests an app of their own: supertest, real signatures, the real receiver. */
import { createReceiver, memoryInbox } from "@payhooks/core";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { silent } from "../../../test/support/silent.ts";

const keys = createTestKeys();
const secret = "whsec_of_the_merchant_app";

function merchantApp(): { readonly app: express.Express; readonly credited: Promise<string> } {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret },
    inbox: memoryInbox(),
    logger: silent,
  });
  const credited = new Promise<string>((resolve) => {
    receiver.onDeposit((deposit) => resolve(`${deposit.referenceId} ${deposit.amount}`));
  });
  const app = express();
  app.use("/callbacks/pay", paymentCallbacks(receiver));
  app.use("/webhooks/connect", connectWebhooks(receiver));
  app.use(express.json());
  app.post("/echo", (request, response) => {
    response.json(request.body);
  });
  return { app, credited };
}

describe("an Express app with Payhooks, under supertest", () => {
  it("acknowledges a signed callback and credits it", async () => {
    const { app, credited } = merchantApp();
    const { headers, rawBody } = signPaymentCallback(
      callbackFields({ referenceId: "order-7", amount: "12.500000" }),
      keys.privateKey,
    );
    const response = await supertest(app).post("/callbacks/pay").set(headers).send(rawBody.toString());
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ received: true });
    expect(await credited).toBe("order-7 12.500000");
  });

  it("refuses what supertest makes of bytes: it wants the text", async () => {
    const { app } = merchantApp();
    const { headers, rawBody } = signPaymentCallback(callbackFields(), keys.privateKey);
    const post = (body: Buffer | string) => supertest(app).post("/callbacks/pay").set(headers).send(body);
    expect((await post(rawBody)).status).toBe(401);
    expect((await post(rawBody.toString())).status).toBe(200);
  });

  it("refuses a webhook whose body was changed after it was signed", async () => {
    const { app } = merchantApp();
    const { headers, rawBody } = signConnectWebhook(connectEvent("settlement.approved"), secret);
    const response = await supertest(app)
      .post("/webhooks/connect")
      .set(headers)
      .send(`${rawBody.toString()} `);
    expect(response.status).toBe(400);
    expect(response.body).toEqual({ error: { code: "ERR_SIGNATURE_INVALID" } });
  });

  it("leaves the app's own JSON routes below it as they are", async () => {
    const { app } = merchantApp();
    const response = await supertest(app).post("/echo").send({ amount: 10 });
    expect(response.body).toEqual({ amount: 10 });
  });
});
