import type { PaymentStatus } from "../protocol/events.ts";
import type { CallbackField } from "../signature/canonical.ts";

/** How often the service sends an undocumented field: with every callback, or with some. */
export type FieldPresence = "always" | "sometimes";

type NeverAbsentField = "amount" | "event" | "payTxnId" | "referenceId" | "status" | "timestamp";

/**
 * The name of a specification's field on the wire, and how often it is sent. A text is its name alone. With `"always"` you
 * promise that every callback has the field: if one lacks it nevertheless, Payhooks may read that callback wrongly.
 */
export type FieldOption<Field extends CallbackField> =
  | string
  | {
      readonly name?: string | undefined;
      readonly sent?: (Field extends NeverAbsentField ? "always" : FieldPresence | "absent") | undefined;
    };

/** Options of {@link serviceNames}. Members that are left out have the specification's names. */
export interface ServiceNamesOptions {
  readonly callback?:
    | {
        /** By the specification's name of each field. */
        readonly fields?: { readonly [Field in CallbackField]?: FieldOption<Field> | undefined } | undefined;
        /** Signed fields that the specification does not list, whose values only the service can choose. */
        readonly extra?: Readonly<Record<string, FieldPresence>> | undefined;
        /** Further words for a status, such as `{ FAILED: ["CANCELLED"] }`. Each is 1 to 64 of `A` to `Z` and `_`. */
        readonly statuses?:
          | { readonly [Status in PaymentStatus]?: readonly string[] | undefined }
          | undefined;
      }
    | undefined;
  readonly connect?:
    | {
        /** The header of a webhook's signature. Default `X-Connect-Signature`. */
        readonly signatureHeader?: string | undefined;
        /** The segment of the paths of connected accounts. Default `connect`. */
        readonly pathSegment?: string | undefined;
      }
    | undefined;
  readonly api?:
    | {
        /** The service's own medium. Default `PAY`. */
        readonly medium?: string | undefined;
        /** The names of a transaction's id in answers; the first that an answer has counts. */
        readonly transactionIdFields?: readonly string[] | undefined;
      }
    | undefined;
}

/** The name of a specification's field on the wire, and how often it is sent. */
export interface FieldName {
  readonly name: string;
  readonly sent: FieldPresence | "absent";
}

/**
 * The names that a deployment of the service uses where the specification has a neutral word (specification, Naming note).
 * {@link serviceNames} makes them: complete, checked and frozen.
 */
export interface ServiceNames {
  readonly callback: {
    readonly fields: Readonly<Record<CallbackField, FieldName>>;
    readonly extra: Readonly<Record<string, FieldPresence>>;
    /** The further words for each status. */
    readonly statuses: Readonly<Record<PaymentStatus, readonly string[]>>;
  };
  readonly connect: { readonly signatureHeader: string; readonly pathSegment: string };
  readonly api: { readonly medium: string; readonly transactionIdFields: readonly string[] };
  /** Settings that work but should not stay. A receiver warns of them at its start. */
  readonly warnings: readonly { readonly what: string; readonly fix: string }[];
}
