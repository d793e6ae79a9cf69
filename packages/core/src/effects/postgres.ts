/**
 * Effects in PostgreSQL, through the client that the application has: pg, postgres.js, Drizzle, Kysely or Prisma.
 *
 * @module
 */
export { type PgClient, type PgPool, pgEffects } from "./pg.ts";
export {
  type DrizzleDatabase,
  type DrizzleQueries,
  drizzleEffects,
  type KyselyDatabase,
  type KyselyQueries,
  type KyselyQuery,
  kyselyEffects,
  type PostgresJs,
  type PostgresJsQueries,
  type PrismaDatabase,
  type PrismaEffectsOptions,
  type PrismaQueries,
  postgresJsEffects,
  prismaEffects,
} from "./postgres-clients.ts";
export type { PostgresEffectsOptions } from "./postgres-table.ts";
