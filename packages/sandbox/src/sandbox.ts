import type { Attempt, Delivery, DeliveryState } from "./deliveries/delivery.ts";
import type { Faults } from "./faults/faults.ts";
import type { Outcome, Script, ScriptMatch } from "./payments/outcomes.ts";
import type { Step } from "./payments/step.ts";
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

/** The keys and ids of the merchant. The values are always the present ones. */
export interface SandboxKeys {
  /** The public key in PEM, which verifies callbacks. */
  readonly publicKey: string;
  /** The fingerprint of the public key. */
  readonly keyId: string;
  /** The `X-API-Key` for the payment endpoints: `<PUBLIC_KEY>:<SECRET_KEY>`. */
  readonly apiKey: string;
  /** The `X-API-Key` for the connected-account endpoints. */
  readonly connectApiKey: string;
  readonly merchantId: string;
  readonly masterMerchantId: string;
  readonly userId: string;
  /** Makes a new pair of RSA keys for all further signatures. Deliveries that are signed already keep theirs. */
  rotate(): Promise<void>;
}

/** Selects deliveries. A member that is left out matches all of them. */
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
  /**
   * Sends a delivery again, as a new entry. It sends the same bytes or, with `resign`, a new date and a new signature.
   */
  replay(id: string, options?: { readonly resign?: boolean | undefined }): Delivery;
  /** Waits for the first delivery that matches. Rejects with `ERR_WAIT_TIMEOUT` after `timeoutMs` (default: 5,000). */
  waitFor(filter: DeliveryFilter, options?: { readonly timeoutMs?: number | undefined }): Promise<Delivery>;
  /**
   * Calls the listener after every attempt, with the present state of its delivery, until the returned function is
   * called.
   *
   * @example sandbox.deliveries.onAttempt(({ reference }, { answer }) => console.log(reference, answer?.status));
   */
  onAttempt(listener: (delivery: Delivery, attempt: Attempt) => void): () => void;
  /** Resolves when no attempt is under way. Waiting for a retry or a delay does not count as an attempt. */
  idle(): Promise<void>;
}

/** A running sandbox. */
export interface Sandbox {
  /** The address that it listens on, without a slash at the end. It is the `base_url` of the service. */
  readonly url: string;
  /** Decides the jitter, and which deliveries and calls get faults with a rate. Pass it as an option to repeat a run. */
  readonly seed: string;
  readonly keys: SandboxKeys;
  /** The settings of the connected-account webhooks. */
  readonly settings: { get(): WebhookSettings; set(settings: WebhookSettings): void };
  readonly transactions: {
    /** Oldest first. */
    list(): TransactionRecord[];
    get(id: string): TransactionRecord | undefined;
    byReference(reference: string): TransactionRecord | undefined;
    /** Moves a transaction to a status now, and sends the callback. The rest of its script is dropped. */
    setStatus(
      id: string,
      status: TransactionStatus,
      step?: Pick<Step, "message" | "callback">,
    ): TransactionRecord;
    /** Plays a customer on the hosted page. After `pay`, the script decides. */
    decide(id: string, decision: "pay" | "fail" | "cancel", medium?: Medium): TransactionRecord;
  };
  readonly deliveries: SandboxDeliveries;
  readonly accounts: {
    list(): ConnectedAccount[];
    create(): ConnectedAccount;
    /** Decides on the account's KYC. If webhooks are enabled, it sends one. */
    decide(id: string, decision: Decision): ConnectedAccount;
  };
  readonly settlements: {
    list(): Settlement[];
    create(given: { readonly amount: number; readonly accountId?: string | undefined }): Settlement;
    /**
     * Decides on a settlement, and sends a webhook as for accounts. The service itself sends none today
     * (specification).
     */
    decide(id: string, decision: Decision): Settlement;
  };
  readonly faults: Faults;
  /** Takes a payment as `POST /api/v2/payment/direct` does. All fields have defaults. */
  deposit(input?: TriggerInput): TransactionRecord;
  /** Starts a withdrawal as `POST /api/v2/payment/withdrawal` does. */
  withdraw(input?: TriggerInput): TransactionRecord;
  /** Opens a checkout as `POST /api/v2/payment/checkout` does. `url` is its hosted page. */
  checkout(input?: CheckoutInput): TransactionRecord & { readonly url: string };
  /**
   * Decides the outcome of transactions: of the one with a reference, of those that match, or of all (`{}`).
   *
   * @example sandbox.script("order-7", "FAILED");
   * @example sandbox.script({ medium: "MPESA" }, [{ status: "PENDING" }, { status: "SUCCESS", afterMs: 2_000 }]);
   */
  script(match: string | ScriptMatch, outcome: Outcome): Script;
  /**
   * Clears transactions, deliveries, timers, scripts and accounts. Faults and settings become those of the options. With
   * `keys`, it replaces the keys.
   */
  reset(options?: { readonly keys?: boolean | undefined }): Promise<void>;
  /** Stops at once, and ends open connections. It may be called again. */
  close(): Promise<void>;
}
