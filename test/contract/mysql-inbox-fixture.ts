import { connect, type Socket } from "node:net";
import { mysqlStore } from "@payhooks/core/mysql";
import { createPool } from "mysql2";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import type { InboxFixture } from "./inbox-processes.ts";

/** Short, since here time is real; long enough for a process that gets little of a busy machine. */
const LEASE_MS = 1_500;

/** Well below a lease. */
const REST_MS = 120;

let fixtures = 0;

/** Fresh data: tables of its own. A process that is cut off loses its connections, and gets no new ones. */
export function mysqlInboxFixture(url: string): InboxFixture {
  const prefix = `contract_${process.pid}_${++fixtures}`;
  const cuts: (() => void)[] = [];
  return {
    clock: environmentOf(),
    // Calls that are under way have to end in this time, on a busy machine too.
    advance: (ms) => pause(Math.max(ms + 5, REST_MS)),
    timeTravel: false,
    leaseMs: LEASE_MS,
    endsWithProcess: false,
    open() {
      const sockets = new Set<Socket>();
      let isCut = false;
      const { hostname, port } = new URL(url);
      const pool = createPool({
        uri: url,
        stream: () => {
          const socket = connect({ host: hostname, port: Number(port), noDelay: true });
          sockets.add(socket);
          if (isCut) socket.destroy(new Error("the connection is cut"));
          return socket;
        },
      });
      const cut = (): void => {
        isCut = true;
        for (const socket of sockets) socket.destroy(new Error("the connection is cut"));
      };
      cuts.push(cut);
      return { store: mysqlStore(pool, { prefix, logger: silent }), cut };
    },
    async close() {
      for (const cut of cuts) cut();
    },
  };
}
