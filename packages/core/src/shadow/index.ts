/**
 * A receiver that runs in the shadow of another receiver: it verifies and records the events that the other
 * receiver handles.
 *
 * @module
 */

export type { OldAnswer, ShadowLine } from "./journal-line.ts";
export { type Shadow, type ShadowDelivery, type ShadowEvent, type ShadowOptions, shadow } from "./shadow.ts";
