import { describe, expect, it } from "vitest";
import { conformanceCases, Session } from "./adapter.ts";
import { adapterConformance } from "./suite.ts";
import { KEYS, onNode, SECRET, startServer } from "./targets.ts";
import { EXPRESS_TRAPS, FASTIFY_TRAPS, FETCH_TRAPS, HONO_TRAPS } from "./traps.ts";

describe("every adapter on Node gives the same bytes the same answer", () => {
  adapterConformance([
    { name: "Express 5", traps: EXPRESS_TRAPS, start: () => startServer(onNode("express.ts", "5")) },
    { name: "Express 4", traps: EXPRESS_TRAPS, start: () => startServer(onNode("express.ts", "4")) },
    { name: "Fastify", traps: FASTIFY_TRAPS, start: () => startServer(onNode("fastify.ts")) },
    { name: "Hono", traps: HONO_TRAPS, start: () => startServer(onNode("hono.ts")) },
    { name: "fetch", traps: FETCH_TRAPS, start: () => startServer(onNode("fetch.ts")) },
  ]);
});

describe("the suite itself", () => {
  it("fails an adapter that writes the body out again", { timeout: 120_000 }, async () => {
    const server = await startServer(onNode("mutant.ts"));
    try {
      const session = new Session({ name: "mutant", port: server.port, traps: [] });
      const failed: string[] = [];
      for (const one of conformanceCases(KEYS, SECRET, Date.now()).filter(({ name }) =>
        EXACT.includes(name),
      )) {
        const outcome = await session.run(one);
        if (JSON.stringify(outcome) !== JSON.stringify(session.expected(one))) failed.push(one.name);
      }
      expect(failed).toEqual(EXACT);
    } finally {
      await server.stop();
    }
  });
});

/** Cases that only exact bytes pass. */
const EXACT: readonly string[] = ["white space and CRLF inside and around"];
