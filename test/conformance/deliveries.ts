import {
  type AnyEvent,
  type ServiceNames,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "@payhooks/core";
import {
  anyCallbackFields,
  anyConnectEvent,
  type CallbackFields,
  forgedCallback,
  resplitPair,
  type SignedDelivery,
  signCanonicalString,
  signConnectWebhook,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { type Case, RECEIVED } from "./case.ts";
import { bytesOf, one } from "./sending.ts";

/** Makes the deliveries of a run. Each has ids of its own. Knows the effects that each of them must have. */
export class Deliveries {
  readonly #keys: TestKeys;
  readonly #secret: string;
  readonly #now: number;
  readonly #names: ServiceNames | undefined;
  /** The header of a webhook's signature. */
  readonly signatureHeader: string;
  #count = 0;

  /** Everything that is made with the same keys, secret and time is the same to the byte. */
  constructor(keys: TestKeys, secret: string, now: number, names?: ServiceNames) {
    this.#names = names;
    this.signatureHeader = (names?.connect?.signatureHeader ?? "X-Connect-Signature").toLowerCase();
    this.#keys = keys;
    this.#secret = secret;
    this.#now = now;
  }

  /** The fields of a payment callback, not signed yet. */
  fields(fields: CallbackFields = {}): CallbackFields {
    const n = ++this.#count;
    return anyCallbackFields({ payTxnId: `tx-${n}`, referenceId: `order-${n}`, ...fields }, this.#now);
  }

  payment(fields: CallbackFields = {}): SignedDelivery {
    return this.paymentOf(this.fields(fields));
  }

  /** A payment callback with exactly these fields. */
  paymentOf(fields: CallbackFields): SignedDelivery {
    return signPaymentCallback(fields, this.#keys.privateKey, { names: this.#names });
  }

  /** The service's name for a field. */
  nameOf(field: "amount"): string {
    return this.#names?.callback.fields[field].name ?? field;
  }

  /** The fields as the service calls them, in a body that is not signed. */
  sent(fields: CallbackFields): Readonly<Record<string, unknown>> {
    const { signature, ...sent } = JSON.parse(this.paymentOf(fields).rawBody.toString());
    return sent;
  }

  /** A payment callback in which something was changed after it was signed. */
  forgedPayment(changed: CallbackFields): SignedDelivery {
    return forgedCallback(this.fields(), changed, this.#keys.privateKey);
  }

  /** A payment callback whose signature fits two events: a FAILED one, and a SUCCESS for the victim. */
  ambiguousPayment(victim: string): SignedDelivery {
    const names = { names: this.#names };
    return resplitPair(victim, this.#keys.privateKey, this.fields({ status: "FAILED" }), names).forged;
  }

  /** The signature of a payment, for a string that was written by hand. */
  signatureOf(canonical: string): string {
    return signCanonicalString(canonical, this.#keys.privateKey);
  }

  /** The event of a webhook, not signed yet. */
  event(): Readonly<Record<string, unknown>> {
    const n = ++this.#count;
    const data = {
      object: "settlement",
      id: `wd_${n}`,
      connected_account_id: "cm_1",
      amount: 125000,
      status: "approved",
    };
    return anyConnectEvent("settlement.approved", { idempotency_key: `evt_${n}`, data }, this.#now);
  }

  /** A webhook with this body. Without one, an event of its own is its body. */
  webhook(body: string | Uint8Array = JSON.stringify(this.event())): SignedDelivery {
    return signConnectWebhook(Buffer.from(body), this.#secret, { names: this.#names });
  }

  /** A webhook that has more members, written exactly so. */
  webhookWith(more: string): SignedDelivery {
    return this.webhook(JSON.stringify(this.event()).replace(/\}$/, `,${more}}`));
  }

  /** A case of one delivery that is accepted, and whose handler runs. */
  accepted(name: string, path: string, delivery: SignedDelivery, tenant = ""): Case {
    return {
      name,
      send: one(bytesOf(path, delivery)),
      answers: [RECEIVED],
      effects: this.ranOnce(delivery, tenant),
    };
  }

  /** The effects of the first copy of a delivery. It is accepted, its handler sees exactly this event, and it is finished. */
  ranOnce(delivery: SignedDelivery, tenant = ""): string[] {
    return [...this.started(delivery, tenant), `finished ${this.idOf(delivery)}`];
  }

  /** The effects of the first copy of a delivery up to its handler's run, however that ends. */
  started(delivery: SignedDelivery, tenant = ""): string[] {
    return [`accepted ${tenant}${this.#factsOf(delivery)}`, this.ran(delivery)];
  }

  /** The effect of one run of a handler. */
  ran(delivery: SignedDelivery): string {
    return `ran ${JSON.stringify(this.#seen(delivery))}`;
  }

  /** The effect of a further copy of a delivery. */
  duplicate(delivery: SignedDelivery): string {
    return `duplicate ${this.#factsOf(delivery)}`;
  }

  idOf(delivery: SignedDelivery): string {
    const event = this.#seen(delivery);
    return "payTxnId" in event ? event.payTxnId : event.idempotency_key;
  }

  /** The event's name, status and id, as a notice is told. A webhook has no status. */
  #factsOf(delivery: SignedDelivery): string {
    const event = this.#seen(delivery);
    return `${event.event} ${"payTxnId" in event ? event.status : ""} ${this.idOf(delivery)}`;
  }

  /** The event that a handler sees of a delivery. It is verified here without any adapter. */
  #seen({ rawBody, headers }: SignedDelivery): AnyEvent {
    const signature = headers[this.signatureHeader];
    return signature !== undefined
      ? verifyConnectWebhook(rawBody, signature, { secret: this.#secret }).event
      : verifyPaymentCallback(rawBody, { publicKey: this.#keys.publicKey, names: this.#names }).event;
  }
}
