/**
 * A receiver that is WRONG: it does what the service's documentation says, and nothing more. It verifies the signature,
 * parses the body and credits the order, and so it credits re-split forgeries too (docs/concepts/security.md). It is here to be
 * attacked, by `payhooks send deposit --forge resplit` or by the sandbox's fault `resplit`. Do not copy it.
 */
import { verify } from "node:crypto";
import type { AddressInfo } from "node:net";
import express from "express";

const publicKey = process.env.PAY_PUBLIC_KEY ?? "";

/** Every field but the signature, nulls omitted, names sorted, `name=value` joined with `&`. */
function canonicalString({ signature, ...fields }: Record<string, unknown>): string {
  const names = Object.keys(fields).filter((name) => fields[name] !== null);
  return names
    .sort()
    .map((name) => `${name}=${fields[name]}`)
    .join("&");
}

const app = express();
app.post("/callbacks/pay", express.json(), (request, response) => {
  const callback: Record<string, unknown> = request.body;
  const signature = Buffer.from(String(callback.signature), "base64");
  if (!verify("sha256", Buffer.from(canonicalString(callback)), publicKey, signature)) {
    console.log("refused: the signature does not fit");
    response.sendStatus(401);
    return;
  }
  const { referenceId, status, amount } = callback;
  console.log(status === "SUCCESS" ? `credited ${amount} for ${referenceId}` : `${status}: ${referenceId}`);
  response.sendStatus(200);
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`victim listening on port ${(server.address() as AddressInfo).port}`);
});
