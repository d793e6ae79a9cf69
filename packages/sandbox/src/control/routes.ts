import { type Context, Hono } from "hono";
import { failureOf, success } from "../api/answers.ts";
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

  control.get("/", (c) => success(c, { url: sandbox.url, seed: sandbox.seed, keys: shownKeys(sandbox) }));
  control.get("/keys", (c) => success(c, shownKeys(sandbox)));
  control.get("/keys/public.pem", (c) =>
    c.body(keys.publicKey, 200, {
      "Content-Type": "application/x-pem-file",
      "Content-Disposition": 'attachment; filename="public.pem"',
    }),
  );
  control.post("/keys/rotate", async (c) => {
    await keys.rotate();
    return success(c, shownKeys(sandbox));
  });

  control.get("/transactions", (c) => success(c, transactions.list()));
  control.get("/transactions/:id", (c) =>
    success(c, found(transactions.get(c.req.param("id")), "transaction")),
  );
  control.post("/transactions/:id/status", async (c) => {
    const { status, ...step } = await jsonBody(c);
    const isStatus = (value: unknown): value is TransactionStatus => STATUSES.some((one) => one === value);
    if (!isStatus(status)) throw wrong("status", `must be one of ${STATUSES.join(", ")}`);
    toPath([{ ...step, status }]);
    return success(c, transactions.setStatus(c.req.param("id"), status, step));
  });
  control.post("/deposits", async (c) => success(c, sandbox.deposit(await optionalJsonBody(c))));
  control.post("/withdrawals", async (c) => success(c, sandbox.withdraw(await optionalJsonBody(c))));
  control.post("/checkouts", async (c) => success(c, sandbox.checkout(await optionalJsonBody(c))));

  control.get("/deliveries", (c) => {
    const { flow, event, reference, status, state } = c.req.query();
    return success(c, deliveries.list({ flow, event, reference, status, state } as DeliveryFilter));
  });
  control.get("/deliveries/:id", (c) => success(c, found(deliveries.get(c.req.param("id")), "delivery")));
  control.post("/deliveries/:id/replay", async (c) => {
    const { resign } = await optionalJsonBody(c);
    return success(c, deliveries.replay(c.req.param("id"), { resign: resign === true }));
  });

  control.get("/faults", (c) => success(c, faults.list()));
  control.post("/faults", async (c) => success(c, faults.add((await jsonBody(c)) as JsonObject & FaultRule)));
  control.delete("/faults", (c) => {
    faults.clear();
    return success(c, []);
  });
  control.delete("/faults/:id", (c) => {
    found(faults.remove(c.req.param("id")) || undefined, "fault");
    return success(c, faults.list());
  });

  control.post("/scripts", async (c) => {
    const { match = {}, outcome } = await jsonBody(c);
    if (typeof match !== "string" && !isJsonObject(match))
      throw wrong("match", "must be a reference or an object");
    return success(c, sandbox.script(match, toPath(outcome)));
  });

  control.get("/connected-accounts", (c) => success(c, accounts.list()));
  control.post("/connected-accounts", (c) => success(c, accounts.create()));
  control.post("/connected-accounts/:id/kyc", async (c) =>
    success(c, accounts.decide(c.req.param("id"), await decisionIn(c))),
  );
  control.get("/settlements", (c) => success(c, settlements.list()));
  control.post("/settlements", async (c) => {
    const { amount = 125_000, connected_account_id: accountId } = await optionalJsonBody(c);
    if (typeof amount !== "number") throw wrong("amount", "must be a whole number above 0");
    if (accountId !== undefined && typeof accountId !== "string") {
      throw wrong("connected_account_id", "must be a string");
    }
    return success(c, settlements.create({ amount, accountId }));
  });
  control.post("/settlements/:id/decision", async (c) =>
    success(c, settlements.decide(c.req.param("id"), await decisionIn(c))),
  );

  control.get("/settings", (c) => success(c, settings.get()));
  control.put("/settings", async (c) => {
    settings.set((await jsonBody(c)) as JsonObject & WebhookSettings);
    return success(c, settings.get());
  });

  control.post("/reset", async (c) => {
    const { keys: withKeys } = await optionalJsonBody(c);
    await sandbox.reset({ keys: withKeys === true });
    return success(c, shownKeys(sandbox));
  });

  control.onError((error, c) => failureOf(c, error));
  return control;
}

async function decisionIn(c: Context<ServerEnv>): Promise<Decision> {
  const { decision } = await jsonBody(c);
  if (decision === "approved" || decision === "declined") return decision;
  throw wrong("decision", "must be approved or declined");
}

function shownKeys({ keys }: Sandbox): Record<string, string> {
  const { publicKey, keyId, apiKey, connectApiKey, merchantId, masterMerchantId, userId } = keys;
  return { publicKey, keyId, apiKey, connectApiKey, merchantId, masterMerchantId, userId };
}

function found<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new SandboxError("ERR_NOT_FOUND", `There is no such ${what}.`);
  return value;
}

function wrong(field: string, message: string): SandboxError {
  return new SandboxError("ERR_PARAMETERS", `${field} ${message}.`, { problems: [{ field, message }] });
}
