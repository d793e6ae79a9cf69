/**
 * For tests of a merchant's own code: real signatures, deliveries of every kind, and a harness that runs the real receiver on a
 * clock that is moved by hand.
 *
 * @module
 */
export {
  anyCallbackFields,
  anyConnectEvent,
  callbackFields,
  connectEvent,
  forgedCallback,
  resplitPair,
  shuffled,
} from "./builders.ts";
export { type FakeClock, fakeClock } from "./clock.ts";
export { createHarness, type Harness, type HarnessDelivery, type HarnessOptions } from "./harness.ts";
export {
  asDelivery,
  type CallbackFields,
  createTestKeys,
  type SignedDelivery,
  signCanonicalString,
  signConnectWebhook,
  signPaymentCallback,
  type TestKeys,
} from "./signers.ts";
export { type SourceSigner, signers } from "./source-signers.ts";
