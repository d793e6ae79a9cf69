/** Everything that can happen to a record, for stores to do inside of their atomic step. */
export { accept, claimedReference } from "./accept.ts";
export { discard, heldOf, lifeOf, matchesFilter, replay } from "./decisions.ts";
export { begin, finish, renew, step } from "./lease.ts";
export { checkHeldRoom, heldSlots, isFinished, markQueued } from "./record.ts";
