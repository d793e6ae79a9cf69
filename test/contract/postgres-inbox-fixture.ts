import type { PGlite } from "@electric-sql/pglite";
import { type PostgresTarget, postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import type { InboxFixture } from "./inbox-processes.ts";

/** Short, since here time is real; long enough for a process that gets little of a busy machine. */
const LEASE_MS = 1_500;

/** Well below a lease. */
const REST_MS = 120;

let fixtures = 0;

/** One process's way to the data, and what breaks it. */
interface Way {
  readonly target: PostgresTarget;
  readonly cut: () => void;
}

/** Connections of a process's own, which `cut` breaks. */
export function waysTo(url: string): () => Way {
  return () => {
    const clients = new Set<pg.Client>();
    class Noted extends pg.Client {
      constructor(settings?: pg.ClientConfig) {
        super(settings);
        clients.add(this);
      }
    }
    const pool = new pg.Pool({ connectionString: url, Client: Noted } as pg.PoolConfig);
    return {
      target: pool,
      cut: () => {
        for (const client of clients) void client.end();
      },
    };
  };
}

/** A PostgreSQL in this process has no connections: a process that is cut off gets no more answers. */
export function waysToPglite(database: PGlite): () => Way {
  return () => {
    let isCut = false;
    return {
      target: {
        query: async (text, values) => {
          if (isCut) throw new Error("the connection is cut");
          return database.query(text, values);
        },
      },
      cut: () => {
        isCut = true;
      },
    };
  };
}

/** Fresh data: a schema of its own. */
export function postgresInboxFixture(connect: () => Way): InboxFixture {
  const schema = `contract_${process.pid}_${++fixtures}`;
  const cuts: (() => void)[] = [];
  return {
    clock: environmentOf(),
    // Calls that are under way have to end in this time, on a busy machine too.
    advance: (ms) => pause(Math.max(ms + 5, REST_MS)),
    timeTravel: false,
    leaseMs: LEASE_MS,
    endsWithProcess: false,
    open() {
      const { target, cut } = connect();
      cuts.push(cut);
      return { store: postgresStore(target, { schema, logger: silent }), cut };
    },
    async close() {
      for (const cut of cuts) cut();
    },
  };
}
