/**
 * A receiver that runs in the shadow of another one: it verifies and records what the other one handles.
 *
 * @module
 */

export type { OldAnswer, ShadowLine } from "./journal-line.ts";
export { type Shadow, type ShadowDelivery, type ShadowEvent, type ShadowOptions, shadow } from "./shadow.ts";
