import type { Attempt, Delivery, DeliveryState } from "./deliveries/delivery.ts";
import type { Faults } from "./faults/faults.ts";
import type { Outcome, Script, ScriptMatch, Step } from "./payments/outcomes.ts";
import type { TransactionRecord } from "./payments/transactions.ts";
import type { CheckoutInput, TriggerInput } from "./trigger.ts";
import type {
  ConnectedAccount,
  Decision,
  Medium,
  Settlement,
  TransactionStatus,
  WebhookSettings,
} from "./wire.ts";

/** What the merchant and the service know each other by. All values are those of this moment. */
export interface SandboxKeys {
  /** PEM; callbacks are verified with it. */
  readonly publicKey: string;
  /** Fingerprint of the public key. */
  readonly keyId: string;
  /** `X-API-Key` of the payment endpoints: `<PUBLIC_KEY>:<SECRET_KEY>`. */
  readonly apiKey: string;
  /** `X-API-Key` of the connected-account endpoints. */
  readonly connectApiKey: string;
  readonly merchantId: string;
  readonly masterMerchantId: string;
  readonly userId: string;
  /** Makes a new RSA pair. What was signed before keeps its signature; everything after carries the new key's. */
  rotate(): Promise<void>;
}

/** Picks deliveries; what is left out fits all. */
export interface DeliveryFilter {
  readonly flow?: Delivery["flow"] | undefined;
  readonly event?: string | undefined;
  readonly reference?: string | undefined;
  readonly status?: string | undefined;
  readonly state?: DeliveryState | undefined;
}

/** The dispatch log. */
export interface SandboxDeliveries {
  /** Oldest first. */
  list(filter?: DeliveryFilter): Delivery[];
  get(id: string): Delivery | undefined;
  /** Sends a delivery again, as a new entry: the same bytes, or with `resign` dated and signed anew. */
  replay(id: string, options?: { readonly resign?: boolean | undefined }): Delivery;
  /** The first delivery that fits, as soon as there is one. Rejects with `ERR_WAIT_TIMEOUT` (default 5 s). */
  waitFor(filter: DeliveryFilter, options?: { readonly timeoutMs?: number | undefined }): Promise<Delivery>;
  /**
   * Calls back after every attempt, with its delivery as it stands then. The returned function ends that.
   *
   * @example sandbox.deliveries.onAttempt(({ reference }, { answer }) => console.log(reference, answer?.status));
   */
  onAttempt(listener: (delivery: Delivery, attempt: Attempt) => void): () => void;
  /** Resolves when no attempt is under way; waits for retries and delays do not count. */
  settled(): Promise<void>;
}

/** A running sandbox. */
export interface Sandbox {
  /** Where it listens, without a slash at the end: the `base_url` of the service. */
  readonly url: string;
  /** What faults by rate and jitter are drawn from; pass it as an option to repeat a run. */
  readonly seed: string;
  readonly keys: SandboxKeys;
  /** Settings of the connected-account webhooks. */
  readonly settings: { get(): WebhookSettings; set(settings: WebhookSettings): void };
  readonly transactions: {
    /** Oldest first. */
    list(): TransactionRecord[];
    get(id: string): TransactionRecord | undefined;
    byReference(reference: string): TransactionRecord | undefined;
    /** Moves a transaction to a status now, with its callback; what its script had planned is dropped. */
    setStatus(
      id: string,
      status: TransactionStatus,
      step?: Pick<Step, "message" | "callback">,
    ): TransactionRecord;
    /** What a customer of the hosted page does. `pay` follows the script. */
    decide(id: string, decision: "pay" | "fail" | "cancel", medium?: Medium): TransactionRecord;
  };
  readonly deliveries: SandboxDeliveries;
  readonly accounts: {
    list(): ConnectedAccount[];
    create(): ConnectedAccount;
    /** Decides on the account's KYC and sends the webhook when those are enabled. */
    decide(id: string, decision: Decision): ConnectedAccount;
  };
  readonly settlements: {
    list(): Settlement[];
    create(given: { readonly amount: number; readonly accountId?: string | undefined }): Settlement;
    /** As for accounts. The service itself does not send settlement events today (specification). */
    decide(id: string, decision: Decision): Settlement;
  };
  readonly faults: Faults;
  /** Takes a payment as `POST /api/v2/payment/direct` does. Every field has a default. */
  deposit(input?: TriggerInput): TransactionRecord;
  /** Starts a withdrawal as `POST /api/v2/payment/withdrawal` does. */
  withdraw(input?: TriggerInput): TransactionRecord;
  /** Opens a checkout as `POST /api/v2/payment/checkout` does; `url` is its hosted page. */
  checkout(input?: CheckoutInput): TransactionRecord & { readonly url: string };
  /**
   * Says what becomes of transactions: of one reference, of those that match, or of all.
   *
   * @example sandbox.script("order-7", "FAILED");
   * @example sandbox.script({ medium: "MPESA" }, [{ status: "PENDING" }, { status: "SUCCESS", afterMs: 2_000 }]);
   */
  script(match: string | ScriptMatch, outcome: Outcome): Script;
  /** Clears transactions, deliveries, timers, faults, scripts, accounts and settings; keys only when asked. */
  reset(options?: { readonly keys?: boolean | undefined }): Promise<void>;
  /** Stops at once, open connections included. May be called again. */
  close(): Promise<void>;
}
