import { randomUUID } from "node:crypto";
import { boundedMap } from "../bounded-map.ts";
import type { Changes } from "../changes.ts";
import { type Clock, isoTime } from "../clock.ts";
import type { NewDelivery } from "../deliveries/delivery.ts";
import type { Merchant } from "../keys/merchant.ts";
import { SandboxError } from "../sandbox-error.ts";
import type {
  ConnectEventName,
  ConnectedAccount,
  ConnectWebhook,
  Decision,
  Settlement,
  WebhookSettings,
} from "../wire.ts";

const NO_SETTINGS: WebhookSettings = {
  webhook_url: null,
  webhook_secret: null,
  webhook_enabled: false,
};

/** Connected accounts, settlements and the settings of their webhooks. */
export interface Connect {
  readonly settings: WebhookSettings;
  configure(settings: WebhookSettings): void;
  createAccount(): ConnectedAccount;
  accounts(): ConnectedAccount[];
  /** Decides on an account's KYC. If webhooks are enabled, one announces the decision. */
  decideKyc(id: string, decision: Decision): ConnectedAccount;
  /** Creates a settlement, and an account for it if none is given. The amount is a whole number. */
  createSettlement(given: { readonly amount: number; readonly accountId?: string | undefined }): Settlement;
  settlements(): Settlement[];
  /** Decides on a settlement. Here a webhook announces the decision. The service itself does not send that webhook today. */
  decideSettlement(id: string, decision: Decision): Settlement;
  clear(): void;
}

export interface ConnectDependencies {
  readonly clock: Clock;
  readonly changes: Changes;
  readonly merchant: () => Merchant;
  readonly maxEntries: number;
  readonly send: (delivery: NewDelivery) => void;
}

export function createConnect(dependencies: ConnectDependencies): Connect {
  const { changes } = dependencies;
  const accounts = boundedMap<ConnectedAccount>(
    dependencies.maxEntries,
    ({ kyc_status }) => kyc_status !== "pending",
  );
  const settlements = boundedMap<Settlement>(dependencies.maxEntries, ({ status }) => status !== "pending");
  let settings = NO_SETTINGS;

  const emit = (event: ConnectEventName, data: ConnectedAccount | Settlement, status: Decision): void => {
    const { webhook_url: url, webhook_enabled: isEnabled } = settings;
    if (!isEnabled || url === null) return;
    const webhook: ConnectWebhook = {
      event,
      idempotency_key: `evt_${randomUUID()}`,
      occurred_at: isoTime(dependencies.clock.now()),
      data,
    };
    dependencies.send({
      flow: "connect",
      event,
      deduplicationKey: webhook.idempotency_key,
      reference: null,
      status,
      url,
      message: { flow: "connect", envelope: { ...webhook } },
    });
  };

  const createAccount = (): ConnectedAccount => {
    const account: ConnectedAccount = {
      object: "connected_account",
      id: `cm_${randomUUID()}`,
      master_merchant_id: dependencies.merchant().masterMerchantId,
      kyc_status: "pending",
    };
    accounts.set(account.id, account);
    changes.publish("account", account.id);
    return account;
  };

  return {
    get settings() {
      return settings;
    },
    configure(next) {
      settings = next;
      changes.publish("settings");
    },
    createAccount,
    accounts: () => accounts.values(),
    decideKyc(id, decision) {
      const account = accounts.get(id);
      if (account === undefined) {
        throw new SandboxError("ERR_NOT_FOUND", `There is no connected account ${id}.`);
      }
      const decided = { ...account, kyc_status: decision };
      accounts.set(id, decided);
      changes.publish("account", id);
      emit(`connected_account.${decision}`, decided, decision);
      return decided;
    },
    createSettlement({ amount, accountId }) {
      if (!Number.isSafeInteger(amount) || amount <= 0) {
        const problems = [{ field: "amount", message: "must be a whole number above 0" }];
        throw new SandboxError("ERR_PARAMETERS", "The amount of a settlement is a whole number.", {
          problems,
        });
      }
      if (accountId !== undefined && accounts.get(accountId) === undefined) {
        throw new SandboxError("ERR_NOT_FOUND", `There is no connected account ${accountId}.`);
      }
      const settlement: Settlement = {
        object: "settlement",
        id: `wd_${randomUUID()}`,
        connected_account_id: accountId ?? createAccount().id,
        amount,
        status: "pending",
      };
      settlements.set(settlement.id, settlement);
      changes.publish("settlement", settlement.id);
      return settlement;
    },
    settlements: () => settlements.values(),
    decideSettlement(id, decision) {
      const settlement = settlements.get(id);
      if (settlement === undefined) throw new SandboxError("ERR_NOT_FOUND", `There is no settlement ${id}.`);
      const decided = { ...settlement, status: decision };
      settlements.set(id, decided);
      changes.publish("settlement", id);
      emit(`settlement.${decision}`, decided, decision);
      return decided;
    },
    clear() {
      settings = NO_SETTINGS;
      accounts.clear();
      settlements.clear();
    },
  };
}
