import { type Context, Hono } from "hono";
import { answerError, answerSuccess } from "../api/answers.ts";
import type { FaultRule } from "../faults/kinds.ts";
import { isJsonObject, type JsonObject } from "../json.ts";
import { toPath } from "../payments/outcomes.ts";
import type { DeliveryFilter, Sandbox } from "../sandbox.ts";
import { SandboxError } from "../sandbox-error.ts";
import { jsonBody, optionalJsonBody } from "../server/body.ts";
import type { ServerEnv } from "../server/connection.ts";
import { type Decision, STATUSES, type TransactionStatus, type WebhookSettings } from "../wire.ts";

/** The control API offers everything that the library can do as JSON, for the dashboard and for programs. */
export function controlRoutes(sandbox: Sandbox): Hono<ServerEnv> {
  const { transactions, deliveries, accounts, settlements, faults, keys, settings } = sandbox;
  const control = new Hono<ServerEnv>().basePath("/sandbox");

  control.get("/", (c) =>
    answerSuccess(c, { url: sandbox.url, seed: sandbox.seed, keys: keysAsJson(sandbox) }),
  );
  control.get("/keys", (c) => answerSuccess(c, keysAsJson(sandbox)));
  control.get("/keys/public.pem", (c) =>
    c.body(keys.publicKey, 200, {
      "Content-Type": "application/x-pem-file",
      "Content-Disposition": 'attachment; filename="public.pem"',
    }),
  );
  control.post("/keys/rotate", async (c) => {
    await keys.rotate();
    return answerSuccess(c, keysAsJson(sandbox));
  });

  control.get("/transactions", (c) => answerSuccess(c, transactions.list()));
  control.get("/transactions/:id", (c) =>
    answerSuccess(c, requireFound(transactions.get(c.req.param("id")), "transaction")),
  );
  control.post("/transactions/:id/status", async (c) => {
    const { status, ...step } = await jsonBody(c);
    const isStatus = (value: unknown): value is TransactionStatus => STATUSES.some((name) => name === value);
    if (!isStatus(status)) throw parameterError("status", `must be one of ${STATUSES.join(", ")}`);
    toPath([{ ...step, status }]);
    return answerSuccess(c, transactions.setStatus(c.req.param("id"), status, step));
  });
  control.post("/deposits", async (c) => answerSuccess(c, sandbox.deposit(await optionalJsonBody(c))));
  control.post("/withdrawals", async (c) => answerSuccess(c, sandbox.withdraw(await optionalJsonBody(c))));
  control.post("/checkouts", async (c) => answerSuccess(c, sandbox.checkout(await optionalJsonBody(c))));

  control.get("/deliveries", (c) => {
    const { flow, event, reference, status, state } = c.req.query();
    return answerSuccess(c, deliveries.list({ flow, event, reference, status, state } as DeliveryFilter));
  });
  control.get("/deliveries/:id", (c) =>
    answerSuccess(c, requireFound(deliveries.get(c.req.param("id")), "delivery")),
  );
  control.post("/deliveries/:id/replay", async (c) => {
    const { resign } = await optionalJsonBody(c);
    return answerSuccess(c, deliveries.replay(c.req.param("id"), { resign: resign === true }));
  });

  control.get("/faults", (c) => answerSuccess(c, faults.list()));
  control.post("/faults", async (c) =>
    answerSuccess(c, faults.add((await jsonBody(c)) as JsonObject & FaultRule)),
  );
  control.delete("/faults", (c) => {
    faults.clear();
    return answerSuccess(c, []);
  });
  control.delete("/faults/:id", (c) => {
    requireFound(faults.remove(c.req.param("id")) || undefined, "fault");
    return answerSuccess(c, faults.list());
  });

  control.post("/scripts", async (c) => {
    const { match = {}, outcome } = await jsonBody(c);
    if (typeof match !== "string" && !isJsonObject(match))
      throw parameterError("match", "must be a reference or an object");
    return answerSuccess(c, sandbox.script(match, toPath(outcome)));
  });

  control.get("/connected-accounts", (c) => answerSuccess(c, accounts.list()));
  control.post("/connected-accounts", (c) => answerSuccess(c, accounts.create()));
  control.post("/connected-accounts/:id/kyc", async (c) =>
    answerSuccess(c, accounts.decide(c.req.param("id"), await decisionIn(c))),
  );
  control.get("/settlements", (c) => answerSuccess(c, settlements.list()));
  control.post("/settlements", async (c) => {
    const { amount = 125_000, connected_account_id: accountId } = await optionalJsonBody(c);
    if (typeof amount !== "number") throw parameterError("amount", "must be a whole number above 0");
    if (accountId !== undefined && typeof accountId !== "string") {
      throw parameterError("connected_account_id", "must be a string");
    }
    return answerSuccess(c, settlements.create({ amount, accountId }));
  });
  control.post("/settlements/:id/decision", async (c) =>
    answerSuccess(c, settlements.decide(c.req.param("id"), await decisionIn(c))),
  );

  control.get("/settings", (c) => answerSuccess(c, settings.get()));
  control.put("/settings", async (c) => {
    settings.set((await jsonBody(c)) as JsonObject & WebhookSettings);
    return answerSuccess(c, settings.get());
  });

  control.post("/reset", async (c) => {
    const { keys: withKeys } = await optionalJsonBody(c);
    await sandbox.reset({ keys: withKeys === true });
    return answerSuccess(c, keysAsJson(sandbox));
  });

  control.onError((error, c) => answerError(c, error));
  return control;
}

async function decisionIn(c: Context<ServerEnv>): Promise<Decision> {
  const { decision } = await jsonBody(c);
  if (decision === "approved" || decision === "declined") return decision;
  throw parameterError("decision", "must be approved or declined");
}

function keysAsJson({ keys }: Sandbox): Record<string, string> {
  const { publicKey, keyId, apiKey, connectApiKey, merchantId, masterMerchantId, userId } = keys;
  return { publicKey, keyId, apiKey, connectApiKey, merchantId, masterMerchantId, userId };
}

function requireFound<Value>(value: Value | undefined, kind: string): Value {
  if (value === undefined) throw new SandboxError("ERR_NOT_FOUND", `There is no such ${kind}.`);
  return value;
}

function parameterError(field: string, message: string): SandboxError {
  return new SandboxError("ERR_PARAMETERS", `${field} ${message}.`, { problems: [{ field, message }] });
}
