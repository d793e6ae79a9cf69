/**
 * Exactly once: effects in the merchant's own transaction.
 *
 * @module
 */
export type { EffectContext, EffectFunction, EffectMethods, EffectResult, NotPromise } from "./context.ts";
export type { EffectRun, Effects, EffectsOptions, RunEffects } from "./effects.ts";
export { mysqlEffectsSql } from "./mysql-table.ts";
export { effects, type OwnClient } from "./own-client.ts";
export { postgresEffectsSql } from "./postgres-table.ts";
export { sqliteEffectsSql } from "./sqlite-table.ts";
export type { EffectInsertResult, EffectsClient, InsertedEffect } from "./transaction.ts";
