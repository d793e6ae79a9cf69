/**
 * Webhooks of any sender beside the payment service: how they are verified and read, and ready sources of well-known senders.
 *
 * @module
 */

export type { SourceEvent } from "../protocol/events.ts";
export { type HmacOptions, hmac } from "./hmac.ts";
export { anyOf, type TokenOptions, token, unsafeUnsigned } from "./other-verifiers.ts";
export { type PublicKeySignatureOptions, publicKeySignature } from "./public-key-signature.ts";
export {
  github,
  paystack,
  type ReadySourceOptions,
  type StandardWebhooksOptions,
  type StripeOptions,
  shopify,
  slack,
  standardWebhooks,
  stripe,
} from "./ready-sources.ts";
export {
  type Answer,
  type ReadEvent,
  type Source,
  type SourceDelivery,
  type SourceOptions,
  source,
  type TypesOnly,
  typesOnly,
} from "./source.ts";
export type { StandardSchemaV1 } from "./standard-schema.ts";
export type { SourceRequest, Verifier, VerifyFunction, VerifyOptions, VerifyResult } from "./verifier.ts";
