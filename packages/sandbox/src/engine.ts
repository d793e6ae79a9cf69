import type { OrderRules } from "./api/orders.ts";
import { type Changes, type ChangeTopic, createChanges } from "./changes.ts";
import { nanosecondStamps } from "./clock.ts";
import { type Connect, createConnect } from "./connect/connect.ts";
import type { Delivery } from "./deliveries/delivery.ts";
import { createDispatcher, type Dispatcher } from "./deliveries/dispatcher.ts";
import { createSigner } from "./deliveries/signer.ts";
import { createTransport } from "./deliveries/transport.ts";
import { createFaults, type FaultRegistry } from "./faults/faults.ts";
import { FAULT_KINDS } from "./faults/kinds.ts";
import { createMerchant, type Merchant } from "./keys/merchant.ts";
import { generateSigningKey, privatePem, readSigningKey, type SigningKey } from "./keys/signing-keys.ts";
import type { ResolvedOptions } from "./options.ts";
import { callbackFor } from "./payments/callback.ts";
import { magicOutcome } from "./payments/magic.ts";
import type { Order } from "./payments/order.ts";
import { createScripts, type Scripts } from "./payments/outcomes.ts";
import { createTransactions, type TransactionRecord, type Transactions } from "./payments/transactions.ts";
import { SandboxError } from "./sandbox-error.ts";
import { readState, type SavedState, writeState } from "./state/state-file.ts";

/** The payment service without HTTP. */
export interface Engine {
  readonly changes: Changes;
  readonly rules: OrderRules;
  readonly scripts: Scripts;
  readonly faults: FaultRegistry;
  readonly connect: Connect;
  readonly dispatcher: Dispatcher;
  readonly transactions: Transactions;
  readonly merchant: () => Merchant;
  readonly key: () => SigningKey;
  /** Writes the state file, and keeps it up to date from then on. */
  start(): void;
  /** Creates the transaction of an order. A magic reference or phone number adds its fault. */
  place(order: Order): TransactionRecord;
  rotateKey(): Promise<SigningKey>;
  /** Clears everything except the keys. With `keys`, it replaces those too. */
  reset(options?: { readonly keys?: boolean | undefined }): Promise<void>;
  close(): void;
}

/** Until {@link Engine.start} is called, the state file is only read. */
export async function createEngine(options: ResolvedOptions): Promise<Engine> {
  const { clock, seed, limits } = options;
  const savedState = options.state === undefined ? null : readState(options.state);
  const changes = createChanges();
  const { names } = options;
  const stamp = nanosecondStamps(clock);
  let merchant = createMerchant(options.merchant, savedState?.merchant);
  let key = await firstKey(options, savedState);
  let isClosed = false;

  const faults = createFaults(seed, changes);
  const scripts = createScripts(options.outcome);
  const transport = createTransport(clock, options);
  const dispatcher: Dispatcher = createDispatcher({
    clock,
    changes,
    faults,
    transport,
    stamp,
    seed,
    retry: options.retry,
    signRetries: options.signRetries,
    maxDeliveries: limits.deliveries,
    signer: createSigner({
      key: () => key,
      secret: () => connect.settings.webhook_secret,
      now: () => clock.now(),
      names,
    }),
    onAcknowledged: ({ flow, deduplicationKey }) => {
      if (flow === "payments") transactions.markReceived(deduplicationKey);
    },
    isForgeable: (delivery) => {
      const record = transactions.get(delivery.deduplicationKey);
      return record !== undefined && !isKnownToSucceed(record, delivery);
    },
    fail: ({ deduplicationKey }) =>
      callbackFor(transactions.fail(deduplicationKey), merchant, stamp(), names),
  });
  const connect: Connect = createConnect({
    clock,
    changes,
    merchant: () => merchant,
    maxEntries: limits.accounts,
    send: dispatcher.send,
  });
  const transactions: Transactions = createTransactions({
    clock,
    changes,
    scripts,
    merchant: () => merchant,
    names,
    delayMs: options.delayMs,
    maxTransactions: limits.transactions,
    onBegin({ reference, phoneNumber, callbackUrl }) {
      const kind = magicOutcome(reference, phoneNumber)?.fault;
      const isForCallback = kind !== undefined && FAULT_KINDS[kind].scope === "delivery";
      if (isForCallback && callbackUrl !== null) faults.addForTransaction(kind, reference);
    },
    onEnd: ({ order }) => faults.removeForTransaction(order.reference),
    announce: (record) => {
      const callback = callbackFor(record, merchant, stamp(), names);
      if (callback !== null) dispatcher.send(callback);
    },
  });

  const save = () => {
    if (options.state === undefined) return;
    writeState(options.state, {
      version: 2,
      merchant,
      privateKey: privatePem(key),
      keyCreatedAt: key.createdAt,
      connect: { settings: connect.settings },
    });
  };

  const begin = () => {
    if (savedState) connect.configure(savedState.connect.settings);
    if (options.settings) connect.configure(options.settings);
    for (const fault of options.faults) faults.add(fault);
  };
  begin();

  let stopSaving = (): void => {};
  const stop = () => {
    transactions.clear();
    dispatcher.clear();
  };

  return {
    changes,
    rules: options,
    scripts,
    faults,
    connect,
    dispatcher,
    transactions,
    merchant: () => merchant,
    key: () => key,
    start() {
      save();
      stopSaving = changes.subscribe(({ topic }) => {
        if (SAVED_TOPICS.has(topic)) save();
      });
    },
    place(order) {
      if (isClosed) throw new SandboxError("ERR_CLOSED", "This sandbox is closed.");
      return transactions.create(order);
    },
    async rotateKey() {
      key = await generateSigningKey(clock.now());
      changes.publish("keys");
      return key;
    },
    async reset({ keys = false } = {}) {
      const next = keys ? await generateSigningKey(clock.now()) : key;
      stop();
      faults.clear();
      scripts.clear();
      connect.clear();
      key = next;
      if (keys) merchant = createMerchant();
      begin();
      changes.publish("reset");
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      stopSaving();
      stop();
      transport.close();
    },
  };
}

/** The changes that the state file is written for. */
const SAVED_TOPICS: ReadonlySet<ChangeTopic> = new Set(["settings", "keys", "reset"]);

/** True if another delivery has announced the success of this transaction already. */
function isKnownToSucceed({ history }: TransactionRecord, delivery: Delivery): boolean {
  const { status, attempts, replayOf } = delivery;
  const isAnnouncing = status === "SUCCESS" && attempts.length === 0 && replayOf === null;
  const successes = history.filter((entry) => entry.status === "SUCCESS").length;
  return successes > (isAnnouncing ? 1 : 0);
}

function firstKey(
  { clock, merchant, state }: ResolvedOptions,
  savedState: SavedState | null,
): SigningKey | Promise<SigningKey> {
  const givenKey =
    merchant.privateKey === undefined ? null : readSigningKey(merchant.privateKey, clock.now());
  if (savedState === null) return givenKey ?? generateSigningKey(clock.now());
  const key = readSigningKey(savedState.privateKey, savedState.keyCreatedAt);
  if (givenKey === null || givenKey.id === key.id) return key;
  throw new SandboxError(
    "ERR_OPTION_INVALID",
    `The state file ${state} holds another private key than the one given. Leave the private key out to go on with the saved one, or delete the file to start with the given one.`,
  );
}
