/**
 * For authors of a store: the contract that every store has to keep, as tests for any test runner.
 *
 * @module
 */
export { type StoreTest, storeContract } from "./contract.ts";
export type { StoreFixture, StoreTraits } from "./fixture.ts";
