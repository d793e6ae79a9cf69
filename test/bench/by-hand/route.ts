import { createPublicKey } from "node:crypto";
import type { Server } from "node:http";
import express from "express";
import { HOST, listening, PATHS } from "../child/framework.ts";
import { callbackReader } from "../child/inline.ts";

/** A callback whose signature is the service's. */
interface Callback {
  /** The same for all copies of one event. */
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A server as it is written by hand: verifies callbacks, and acknowledges each when `keep` has resolved. */
export function verifying(
  publicKey: string,
  keep: (callback: Callback) => Promise<unknown>,
): Promise<Server> {
  const readCallback = callbackReader(createPublicKey(publicKey));
  const app = express();
  app.post(PATHS.rsa, express.raw({ type: "application/json" }), async (request, response) => {
    const fields = readCallback(request.body.toString("utf8"));
    if (fields === null) {
      response.status(401).json({ error: "invalid signature" });
      return;
    }
    await keep({ id: `${fields.payTxnId}:${fields.status}`, fields });
    response.status(200).json({ received: true });
  });
  return listening(app.listen(0, HOST));
}
