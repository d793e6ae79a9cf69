import { type OrderKind, readOrder } from "./api/orders.ts";
import { apiRoutes } from "./api/routes.ts";
import { readSettings } from "./api/settings.ts";
import { controlRoutes } from "./control/routes.ts";
import { createChangeStream } from "./control/stream.ts";
import type { Delivery, DeliveryRecord } from "./deliveries/delivery.ts";
import { createEngine, type Engine } from "./engine.ts";
import { FAULT_KINDS } from "./faults/kinds.ts";
import type { JsonObject } from "./json.ts";
import { wireNames } from "./names.ts";
import { type ResolvedOptions, resolveOptions, type SandboxOptions } from "./options.ts";
import { pageRoutes } from "./pages/routes.ts";
import { magicOutcome } from "./payments/magic.ts";
import type { Order } from "./payments/order.ts";
import { toPath } from "./payments/outcomes.ts";
import type { TransactionRecord } from "./payments/transactions.ts";
import type { DeliveryFilter, Sandbox, SandboxDeliveries, SandboxKeys } from "./sandbox.ts";
import { SandboxError } from "./sandbox-error.ts";
import { createApp } from "./server/app.ts";
import { listen } from "./server/listen.ts";
import { triggerBody } from "./trigger.ts";
import { waitFor } from "./wait.ts";

/**
 * Starts the payment service on this machine: every endpoint of the specification, the hosted checkout, signed
 * callbacks and webhooks, a dashboard at `/` and a control API under `/sandbox`.
 *
 * @throws SandboxError `ERR_OPTION_INVALID`, `ERR_HOST_NOT_LOOPBACK`, `ERR_PORT_IN_USE`, `ERR_CANNOT_LISTEN`,
 * `ERR_STATE_FILE`, and
 *   `ERR_PARAMETERS` for `settings`, `outcome` and `faults`
 * @example
 * const sandbox = await createSandbox({ callbackUrl: "http://127.0.0.1:3000/callbacks/pay" });
 * sandbox.script("order-7", "FAILED");
 * sandbox.deposit({ reference: "order-7", amount: "10.50" });
 * const delivery = await sandbox.deliveries.waitFor({ reference: "order-7", state: "delivered" });
 * await sandbox.close();
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const resolved = resolveOptions(options);
  if (options.outcome !== undefined) toPath(options.outcome);
  const settings = options.settings && readSettings({ ...options.settings }, resolved);
  const engine = await createEngine({ ...resolved, settings });
  const stream = createChangeStream(engine.changes);
  const app = createApp(resolved);
  let url = "";
  const checkoutUrl = (id: string) => `${resolved.publicUrl ?? url}/checkout/${id}`;
  const sandbox = sandboxOf(
    engine,
    resolved,
    () => url,
    checkoutUrl,
    async () => {
      stream.close();
      engine.close();
      await listening.close();
    },
  );
  app.route("/", apiRoutes({ ...engine, clock: resolved.clock, checkoutUrl }));
  app.route("/", controlRoutes(sandbox));
  app.route("/", pageRoutes(sandbox, stream, resolved.callbackUrl ?? ""));
  const listening = await listen(app, resolved.host, resolved.port);
  url = listening.url;
  try {
    engine.start();
  } catch (error) {
    engine.close();
    await listening.close();
    throw error;
  }
  return sandbox;
}

function sandboxOf(
  engine: Engine,
  options: ResolvedOptions,
  url: () => string,
  checkoutUrl: (id: string) => string,
  close: () => Promise<void>,
): Sandbox {
  const { transactions, connect, faults, scripts, changes, rules } = engine;

  const trigger = (kind: OrderKind, input: object): TransactionRecord => {
    const inputFields = { ...input } as JsonObject;
    const { callbackUrl, mediums } = options;
    const body = triggerBody(kind, inputFields, { callbackUrl, mediums });
    const base = options.publicUrl ?? url();
    const ownPages = { success: `${base}/checkout-success`, failed: `${base}/checkout-failed` };
    const order = readOrder(kind, body, { ...rules, names: wireNames(undefined) }, ownPages);
    refuseCallOnly(order);
    const path = inputFields.outcome === undefined ? undefined : toPath(inputFields.outcome);
    if (path !== undefined && transactions.byReference(order.reference) === undefined) {
      scripts.add({ reference: order.reference }, path);
    }
    return engine.place(order);
  };

  return {
    get url() {
      return url();
    },
    seed: options.seed,
    keys: keysOf(engine),
    settings: {
      get: () => connect.settings,
      set: (settings) => connect.configure(readSettings({ ...settings }, rules)),
    },
    transactions: {
      list: transactions.list,
      get: transactions.get,
      byReference: transactions.byReference,
      setStatus: (id, status, step = {}) => transactions.setStatus(id, { ...step, status }),
      decide: (id, decision, medium) => transactions.decide(id, decision, medium ?? null),
    },
    deliveries: deliveriesOf(engine),
    accounts: { list: connect.accounts, create: connect.createAccount, decide: connect.decideKyc },
    settlements: {
      list: connect.settlements,
      create: connect.createSettlement,
      decide: connect.decideSettlement,
    },
    faults: { add: faults.add, list: faults.list, remove: faults.remove, clear: faults.clear },
    deposit: (input = {}) => trigger("direct", input),
    withdraw: (input = {}) => trigger("withdrawal", input),
    checkout(input = {}) {
      const record = trigger("checkout", input);
      return { ...record, url: checkoutUrl(record.transaction.id) };
    },
    script(match, outcome) {
      const script = scripts.add(typeof match === "string" ? { reference: match } : match, outcome);
      changes.publish("script");
      return script;
    },
    reset: engine.reset,
    close,
  };
}

/** Refuses a magic outcome that is the service's answer to a call. A trigger makes no call. */
function refuseCallOnly({ reference, phoneNumber }: Order): void {
  const magic = magicOutcome(reference, phoneNumber);
  if (magic?.fault === undefined || FAULT_KINDS[magic.fault].scope !== "api") return;
  throw new SandboxError(
    "ERR_NOT_POSSIBLE",
    `sbx-${magic.name} works only through the service's own endpoints, such as POST /api/v2/payment/direct: ${magic.does}. Send it from your program.`,
  );
}

function keysOf(engine: Engine): SandboxKeys {
  return {
    get publicKey() {
      return engine.key().publicPem;
    },
    get keyId() {
      return engine.key().id;
    },
    get apiKey() {
      return engine.merchant().apiKey;
    },
    get connectApiKey() {
      return engine.merchant().connectApiKey;
    },
    get merchantId() {
      return engine.merchant().merchantId;
    },
    get masterMerchantId() {
      return engine.merchant().masterMerchantId;
    },
    get userId() {
      return engine.merchant().userId;
    },
    async rotate() {
      await engine.rotateKey();
    },
  };
}

function deliveriesOf({ dispatcher, changes }: Engine): SandboxDeliveries {
  const list = (filter: DeliveryFilter = {}): Delivery[] =>
    dispatcher
      .list()
      .filter((record) => matchesFilter(record, filter))
      .map(toDelivery);
  return {
    list,
    get(id) {
      const record = dispatcher.get(id);
      return record && toDelivery(record);
    },
    replay: (id, options) => toDelivery(dispatcher.replay(id, options)),
    waitFor: (filter, { timeoutMs = 5_000 } = {}) =>
      waitFor(
        changes,
        () => list(filter)[0],
        timeoutMs,
        () => {
          const lastDeliveries = list()
            .slice(-5)
            .map(({ event, reference, status, state }) => {
              return `${event} ${status} ${reference ?? ""} (${state})`;
            });
          return `The last deliveries: ${lastDeliveries.join(", ") || "none"}.`;
        },
      ),
    onAttempt: (listener) => dispatcher.onAttempt((record, attempt) => listener(toDelivery(record), attempt)),
    idle: dispatcher.idle,
  };
}

function matchesFilter(delivery: DeliveryRecord, filter: DeliveryFilter): boolean {
  return (
    (filter.flow ?? delivery.flow) === delivery.flow &&
    (filter.event ?? delivery.event) === delivery.event &&
    (filter.reference ?? delivery.reference) === delivery.reference &&
    (filter.status ?? delivery.status) === delivery.status &&
    (filter.state ?? delivery.state) === delivery.state
  );
}

/** A record without the members that only the dispatcher needs. */
function toDelivery({
  sequence: _s,
  message: _m,
  signed: _g,
  dueAt: _d,
  ...delivery
}: DeliveryRecord): Delivery {
  return delivery;
}
