import type { CallbackFields } from "./signature/canonical-string.ts";
import type { Medium, TransactionStatus } from "./wire.ts";

/**
 * The names that a deployment uses where the specification has a neutral word, as `serviceNames` of `@payhooks/core`
 * makes and checks them.
 */
export interface ServiceNames {
  readonly callback: {
    /** The name on the wire of each field, by its neutral name, and how often it is sent. */
    readonly fields: Readonly<
      Record<string, { readonly name: string; readonly sent: "always" | "sometimes" | "absent" }>
    >;
    /** Signed fields that the specification does not list. */
    readonly extra: Readonly<Record<string, "always" | "sometimes">>;
    /** Other words for the statuses. */
    readonly statuses: Readonly<Record<string, readonly string[] | undefined>>;
  };
  readonly connect: { readonly signatureHeader: string; readonly pathSegment: string };
  readonly api: { readonly medium: string; readonly transactionIdFields: readonly string[] };
}

/** The names that the sandbox uses on the wire. Inside, everything has the neutral names of the specification. */
export interface WireNames {
  /** The header that carries the signature of a webhook. */
  readonly signatureHeader: string;
  /** The segment of the connected accounts' paths. */
  readonly pathSegment: string;
  /** The names of the id in answers. */
  readonly idFields: readonly string[];
  /** The name of a callback's field on the wire. */
  field(name: string): string;
  /** The fields of a callback on the wire, in the order of their names. */
  fields(fields: CallbackFields): CallbackFields;
  /** The extra fields of a callback. Those that are sent sometimes are left out while the transaction is PENDING. */
  extra(about: {
    readonly status: TransactionStatus;
    readonly currency: string;
    readonly medium: string;
  }): CallbackFields;
  /** True for a field of the specification that every callback has. */
  isAlwaysSent(name: string): boolean;
  /** The word for a status in callbacks. Null if no callback announces it. */
  status(status: TransactionStatus): string | null;
  medium(medium: Medium): string;
}

const NEUTRAL_NAMES: WireNames = {
  signatureHeader: "X-Connect-Signature",
  pathSegment: "connect",
  idFields: [],
  field: (name) => name,
  fields: (fields) => fields,
  extra: () => ({}),
  isAlwaysSent: () => false,
  status: (status) => (status === "CANCELLED" ? null : status),
  medium: (medium) => medium,
};

/** Reads the names of a deployment. Without them, the names are those of the specification. */
export function wireNames(names: ServiceNames | undefined): WireNames {
  if (names === undefined) return NEUTRAL_NAMES;
  const { callback, connect, api } = names;
  const nameOf = (name: string): string => callback.fields[name]?.name ?? name;
  const words = Object.entries(callback.statuses).flatMap(([status, others = []]) =>
    others.map((word) => ({ status, word })),
  );
  return {
    signatureHeader: connect.signatureHeader,
    pathSegment: connect.pathSegment,
    idFields: api.transactionIdFields,
    field: nameOf,
    fields(fields) {
      const sentFields = Object.entries(fields).filter(([name]) => callback.fields[name]?.sent !== "absent");
      const namedFields = sentFields.map(([name, value]) => [nameOf(name), value] as const);
      return Object.fromEntries(namedFields.sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    extra({ status, currency, medium }) {
      const values: Readonly<Record<string, string>> = { currency, medium };
      const sentFields = Object.entries(callback.extra).filter(
        ([, often]) => often === "always" || status !== "PENDING",
      );
      return Object.fromEntries(sentFields.map(([name]) => [name, values[name] ?? "sandbox"]));
    },
    isAlwaysSent: (name) => callback.fields[name]?.sent === "always",
    status(status) {
      // The service may have its own word for a cancelled transaction, beside its word for a failed transaction.
      if (status === "CANCELLED") return words.some(({ word }) => word === status) ? status : null;
      const other = words.find((entry) => entry.status === status && entry.word !== "CANCELLED");
      return other?.word ?? status;
    },
    medium: (medium) => (medium === "PAY" ? api.medium : medium),
  };
}
