/**
 * For programs that show stored events to people: why an event is there, as text, as a row of a table, and with its contents.
 * `receiver.events` lists them.
 *
 * @module
 */

export { contentsOf, hideFields } from "./flows/contents.ts";
export { BULK_REASONS } from "./inbox/contract/bulk.ts";
export { eachEvent } from "./inbox/contract/events.ts";
export type { SubjectEvent, SubjectOrder } from "./inbox/contract/subject-order.ts";
export { addUnreadable } from "./inbox/contract/unreadable-events.ts";
export { csvLine, EVENT_COLUMNS, type EventRow, eventRow } from "./inbox/search/event-row.ts";
export { type ExplainedMoment, type Explanation, explain } from "./inbox/search/explain.ts";
export { type ExplainedEvent, explainOrder } from "./inbox/search/explain-order.ts";
export { successesOfReference } from "./inbox/search/same-reference.ts";
export { HELD_BECAUSE, HELD_REASONS, needsInvestigation } from "./protocol/held-reasons.ts";
export { type ParsedJson, parseJsonText } from "./protocol/json.ts";
