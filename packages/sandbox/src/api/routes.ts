import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { Clock } from "../clock.ts";
import type { Connect } from "../connect/connect.ts";
import type { FaultRegistry } from "../faults/faults.ts";
import { parseJsonObject } from "../json.ts";
import { isKey, type Merchant } from "../keys/merchant.ts";
import { magicOutcome } from "../payments/magic.ts";
import type { Order } from "../payments/order.ts";
import type { TransactionRecord, Transactions } from "../payments/transactions.ts";
import { SandboxError } from "../sandbox-error.ts";
import { bodyText, jsonBody } from "../server/body.ts";
import { resetConnection, type ServerEnv } from "../server/connection.ts";
import { answerError, answerFailure, answerSuccess } from "./answers.ts";
import { type OrderKind, type OrderRules, readOrder } from "./orders.ts";
import { readSettings } from "./settings.ts";
import { answerLookUp, answerOrder } from "./transaction-answers.ts";

export interface ApiDependencies {
  readonly clock: Clock;
  readonly faults: FaultRegistry;
  readonly merchant: () => Merchant;
  readonly transactions: Transactions;
  readonly connect: Connect;
  readonly rules: OrderRules;
  /** Creates the transaction of an order, and lets magic references take effect. */
  readonly place: (order: Order) => TransactionRecord;
  /** The URL of a checkout's hosted page. */
  readonly checkoutUrl: (id: string) => string;
}

const DEFAULT_API_DELAY_MS = 2_000;

/** All endpoints of the specification. */
export function apiRoutes(dependencies: ApiDependencies): Hono<ServerEnv> {
  const { transactions, connect, merchant } = dependencies;
  const { names } = dependencies.rules;
  const api = new Hono<ServerEnv>();

  const authenticate =
    (...keys: readonly (() => string)[]): MiddlewareHandler<ServerEnv> =>
    async (c, next) => {
      const givenKey = c.req.header("x-api-key");
      if (keys.some((key) => isKey(givenKey, key()))) return next();
      return answerFailure(
        c,
        401,
        givenKey === undefined ? "Missing API key: set X-API-Key." : "Invalid API key.",
      );
    };

  /**
   * Makes the faults of the service itself happen. The key is checked before, so that a wrong key is always reported.
   */
  const applyFaults: MiddlewareHandler<ServerEnv> = async (c, next) => {
    const { path, method } = c.req;
    const body = (method === "POST" && parseJsonObject(await bodyText(c))) || {};
    const orderedReference = typeof body.reference === "string" ? body.reference : null;
    const reference = orderedReference ?? referenceIn(c.req.url);
    const activeFaults = dependencies.faults.fire({ scope: "api", path, reference }, [
      method,
      path,
      reference ?? "",
    ]);
    const delay = activeFaults.find(({ kind }) => kind === "api-delay");
    if (delay) {
      await new Promise<void>((resolve) =>
        dependencies.clock.after(delay.delayMs ?? DEFAULT_API_DELAY_MS, resolve),
      );
    }
    const kinds = activeFaults.map(({ kind }) => kind);
    const digits = typeof body.phone_number === "string" ? body.phone_number.replaceAll(" ", "") : "";
    const isMagicError =
      orderedReference !== null && magicOutcome(orderedReference, digits)?.fault === "api-error";
    if (kinds.includes("api-reset")) return resetConnection(c);
    if (kinds.includes("api-error") || isMagicError) return answerFailure(c, 500, "Server error (fault).");
    await next();
    if (kinds.includes("api-drop-answer")) c.res = resetConnection(c);
    return undefined;
  };

  api.use(
    "/api/v2/payment/*",
    authenticate(() => merchant().apiKey),
    applyFaults,
  );
  api.use(
    `/api/v2/${names.pathSegment}/*`,
    // Services differ: some take the key for payments here, and some have another.
    authenticate(
      () => merchant().connectApiKey,
      () => merchant().apiKey,
    ),
    applyFaults,
  );

  const placeOrder = (kind: OrderKind) => async (c: Context<ServerEnv>) => {
    const onBehalfOf = connectedMerchant(c.req.header("x-connected-merchant-id"));
    const record = dependencies.place({
      ...readOrder(kind, await jsonBody(c), dependencies.rules),
      onBehalfOf,
    });
    return answerOrder(
      c,
      record,
      names.idFields,
      kind === "checkout" ? dependencies.checkoutUrl(record.transaction.id) : null,
    );
  };
  api.post("/api/v2/payment/direct", placeOrder("direct"));
  api.post("/api/v2/payment/withdrawal", placeOrder("withdrawal"));
  api.post("/api/v2/payment/checkout", placeOrder("checkout"));

  /** For an unknown transaction, the service answers with a success and a message (specification, Errors 1). */
  const notFound = (c: Context<ServerEnv>, idName: string) =>
    answerSuccess(c, { message: `No transaction was found for the ${idName}.` });
  api.get("/api/v2/payment/transaction/ref/:reference", (c) => {
    const reference = c.req.param("reference");
    const record = transactions.byReference(reference);
    // Only the body of this look-up is in the specification. So nothing is added to it.
    return record === undefined
      ? notFound(c, `reference ${JSON.stringify(reference)}`)
      : answerSuccess(c, record.transaction);
  });
  api.get("/api/v2/payment/transaction/:id", (c) => {
    const id = c.req.param("id");
    const record = transactions.get(id);
    return record === undefined
      ? notFound(c, `id ${JSON.stringify(id)}`)
      : answerLookUp(c, record, names.idFields);
  });

  const settingsPath = `/api/v2/${names.pathSegment}/connected-accounts/webhook-settings`;
  api.get(settingsPath, (c) => answerSuccess(c, connect.settings));
  api.put(settingsPath, async (c) => {
    connect.configure(readSettings(await jsonBody(c), dependencies.rules));
    return answerSuccess(c, connect.settings);
  });

  api.all("/api/*", (c) => {
    throw new SandboxError("ERR_NOT_FOUND", `There is no endpoint ${c.req.method} ${c.req.path}.`);
  });
  api.onError((error, c) => answerError(c, error));
  return api;
}

/** The merchant for whom a call is made, or null. Throws `ERR_PARAMETERS` if the header is not an id. */
function connectedMerchant(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (/^[\w.:-]{1,100}$/.test(header)) return header;
  const problem = { field: "X-Connected-Merchant-Id", message: "must be the id of a connected merchant" };
  throw new SandboxError("ERR_PARAMETERS", `${problem.field} ${problem.message}.`, { problems: [problem] });
}

/** The reference in the address of a look-up by reference, or null. */
function referenceIn(url: string): string | null {
  const text = /\/transaction\/ref\/([^/]+)$/.exec(new URL(url).pathname)?.[1];
  if (text === undefined) return null;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
