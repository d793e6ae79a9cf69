import type { ServiceNames } from "@payhooks/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Case, Target } from "./case.ts";
import { conformanceCases } from "./cases/index.ts";
import { Session } from "./session.ts";
import { Table } from "./table.ts";
import { KEYS, SECRET } from "./targets.ts";

/** An adapter on its framework and runtime, ready to be started. */
export interface AdapterUnderTest extends Pick<Target, "own" | "traps" | "runsAfterResponse"> {
  readonly name: string;
  start(): Promise<{ readonly port: number; stop(): Promise<void> }>;
  /** Cases that cannot come about there, by name, with the reason. */
  readonly unreachable?: Readonly<Record<string, string>>;
  /** How long the start may take, with what has to be built for it. */
  readonly startMs?: number;
}

/** Runs the suite against each, and prints the table of all. */
export function adapterConformance(adapters: readonly AdapterUnderTest[], names?: ServiceNames): void {
  const cases: readonly Case[] = conformanceCases(KEYS, SECRET, Date.now(), names);
  const table = new Table(cases);

  it("has 30 cases or more, each with a name of its own", () => {
    expect(cases.length).toBeGreaterThanOrEqual(30);
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });

  describe.each(adapters)("$name", ({ start, startMs = 60_000, unreachable = {}, ...adapter }) => {
    const { name, own = {} } = adapter;
    let session: Session;
    let stop = async (): Promise<void> => {};

    beforeAll(async () => {
      const server = await start();
      stop = () => server.stop();
      session = new Session({ ...adapter, port: server.port });
    }, startMs);
    afterAll(() => stop());

    for (const caseName of Object.keys(unreachable)) table.mark(name, caseName, "unreachable");

    it.each(cases.filter((one) => !Object.hasOwn(unreachable, one.name)))(
      "$name",
      { timeout: 60_000 },
      async (one) => {
        table.mark(name, one.name, "differs");
        expect(await session.run(one)).toEqual(session.expected(one));
        table.mark(name, one.name, Object.hasOwn(own, one.name) ? "own" : "same");
      },
    );

    it("has no effect beyond those of the cases", async () => {
      expect(await session.late()).toEqual([]);
    });

    it("answers by itself only in cases that there are", () => {
      const names = cases.map((one) => one.name);
      const named = [...Object.keys(own), ...Object.keys(unreachable)];
      expect(named.filter((one) => !names.includes(one))).toEqual([]);
    });
  });

  afterAll(() => process.stdout.write(`\n${table}\n\n`));
}
