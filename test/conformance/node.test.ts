import { describe, expect, it } from "vitest";
import { ADAPTERS, type ConformanceServer } from "../adapters.ts";
import { shown } from "./case.ts";
import { conformanceCases } from "./cases/index.ts";
import { closeWhileConnected, ENDED_WITH_ITS_ANSWER } from "./closing.ts";
import { Session } from "./session.ts";
import { adapterConformance } from "./suite.ts";
import { KEYS, NAMES, onNode, SECRET, startServer } from "./targets.ts";
import { FETCH_TRAPS } from "./traps.ts";

const FETCH: ConformanceServer = { name: "fetch", server: ["fetch.ts"], traps: FETCH_TRAPS };
const SERVERS: readonly ConformanceServer[] = [...ADAPTERS.flatMap(({ servers }) => servers), FETCH];

describe("every adapter on Node gives the same bytes the same answer", () => {
  adapterConformance(
    SERVERS.map(({ server, ...adapter }) => ({
      ...adapter,
      start: () => startServer(onNode(...server)),
    })),
  );
});

/** One server of each package: the names of a deployment are the receiver's matter, and each package mounts all its servers alike. */
const ONE_OF_EACH = [...ADAPTERS.flatMap(({ servers }) => servers.slice(0, 1)), FETCH];

describe("every adapter does the same under the names of a deployment", () => {
  adapterConformance(
    ONE_OF_EACH.map(({ server, ...adapter }) => ({
      ...adapter,
      start: () => startServer({ ...onNode(...server), env: { PAY_NAMES: JSON.stringify(NAMES) } }),
    })),
    NAMES,
  );
});

describe("a receiver that closes ends each connection with its answer", () => {
  // Behind a gateway, the connection is the gateway's.
  it.each(SERVERS.filter(({ unreachable }) => unreachable === undefined))(
    "$name",
    { timeout: 60_000 },
    async ({ server: command }) => {
      const server = await startServer(onNode(...command));
      try {
        expect(await closeWhileConnected(server.port)).toEqual(ENDED_WITH_ITS_ANSWER);
      } finally {
        await server.stop();
      }
    },
  );
});

describe("the suite itself", () => {
  it("fails an adapter that writes the body out again", { timeout: 120_000 }, async () => {
    const server = await startServer(onNode("mutant.ts"));
    try {
      const target = { name: "mutant", port: server.port, traps: [] };
      const named = [...ANY_BYTES, ...EXACT_BYTES];
      const tried = conformanceCases(KEYS, SECRET, Date.now()).filter(({ name }) => named.includes(name));
      const passed: string[] = [];
      const failed: string[] = [];
      for (const one of tried) {
        const { answers } = new Session(target).expected(one);
        const given = (await one.send(target)).map(shown);
        (given.join() === answers.join() ? passed : failed).push(one.name);
      }
      expect({ passed, failed }).toEqual({ passed: ANY_BYTES, failed: EXACT_BYTES });
    } finally {
      await server.stop();
    }
  });
});

/** Cases that do not depend on how a body is written. */
const ANY_BYTES: readonly string[] = [
  "first requests of a cold process, five copies at once",
  "payment callback",
  "connected-account webhook",
  "text beyond ASCII, payment",
  "text beyond ASCII, webhook",
  "duplicate names, payment",
];
/** Cases that only the exact bytes pass. */
const EXACT_BYTES: readonly string[] = [
  "byte order mark",
  "invalid UTF-8",
  "white space and CRLF inside and around",
  "a line's end after the body",
  "10.0 stays 10.0, webhook",
  "exponents, minus zero, big integers, webhook",
  "number 10.0 in a signed payment",
  "number beyond 2^53 in a signed payment",
  "escapes that nobody writes",
  "duplicate names, webhook",
  "one bit of the body flipped",
];
