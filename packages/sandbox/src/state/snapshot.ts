import type { ConnectState } from "../connect/connect.ts";
import type { DeliveryRecord } from "../deliveries/delivery.ts";
import { isJsonObject } from "../json.ts";
import type { Merchant } from "../keys/merchant.ts";
import type { Script } from "../payments/outcomes.ts";
import type { TransactionRecord } from "../payments/transactions.ts";

/** The state that survives a restart. Faults do not, since they are meant for the moment. */
export interface Snapshot {
  readonly version: 1;
  readonly merchant: Merchant;
  /** PEM. */
  readonly privateKey: string;
  readonly keyCreatedAt: number;
  readonly connect: ConnectState;
  readonly scripts: readonly Script[];
  readonly transactions: readonly TransactionRecord[];
  readonly deliveries: readonly DeliveryRecord[];
}

/** A type, a list whose items have a shape, or an object with at least these members. */
type Shape = "string" | "number" | "boolean" | { readonly each: Shape } | { readonly with: Members };
type Members = Readonly<Record<string, Shape>>;

const LIST: Shape = { each: { with: {} } };

/** The members without which the sandbox could not go on. */
const SNAPSHOT: Shape = {
  with: {
    merchant: {
      with: {
        merchantId: "string",
        masterMerchantId: "string",
        userId: "string",
        apiKey: "string",
        connectApiKey: "string",
      },
    },
    privateKey: "string",
    keyCreatedAt: "number",
    connect: {
      with: {
        settings: { with: { webhook_enabled: "boolean" } },
        accounts: { each: { with: { id: "string" } } },
        settlements: { each: { with: { id: "string" } } },
      },
    },
    scripts: { each: { with: { match: { with: {} }, path: LIST } } },
    transactions: {
      each: {
        with: {
          transaction: { with: { id: "string", reference: "string" } },
          order: { with: {} },
          history: LIST,
          coming: { each: { with: { dueAt: "number" } } },
        },
      },
    },
    deliveries: {
      each: {
        with: {
          id: "string",
          sequence: "number",
          state: "string",
          message: { with: {} },
          signed: { with: {} },
          attempts: LIST,
        },
      },
    },
  },
};

export function isSnapshot(value: unknown): value is Snapshot {
  return fits(value, SNAPSHOT) && isJsonObject(value) && value.version === 1;
}

function fits(value: unknown, shape: Shape): boolean {
  if (typeof shape === "string") return typeof value === shape;
  if ("each" in shape) return Array.isArray(value) && value.every((item) => fits(item, shape.each));
  return (
    isJsonObject(value) && Object.entries(shape.with).every(([name, member]) => fits(value[name], member))
  );
}
