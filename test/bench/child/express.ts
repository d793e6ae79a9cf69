import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import { type Framework, HOST, listening } from "./framework.ts";

export const onExpress: Framework = {
  byHand(path, check) {
    const app = express();
    app.post(path, express.raw({ type: "application/json" }), (request, response) => {
      if (check !== null && !check(request.body, request.get("x-connect-signature"))) {
        response.status(401).json({ error: "invalid signature" });
        return;
      }
      response.status(200).json({ received: true });
    });
    return listening(app.listen(0, HOST));
  },
  ours(path, scheme, receiver) {
    const app = express();
    app.use(path, scheme === "rsa" ? paymentCallbacks(receiver) : connectWebhooks(receiver));
    return listening(app.listen(0, HOST));
  },
};
