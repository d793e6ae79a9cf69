import { fakeClock } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { GivenSession } from "../../src/postgres/session.ts";
import { environmentOf } from "../../src/time/environment.ts";

const LIMIT_MS = 1_500;

it("a client of the program's own has time to wake its server up, where a statement says so, and no more than usual elsewhere", async () => {
  const clock = fakeClock();
  const client = {
    query: () =>
      new Promise<{ rows: { n: number }[] }>((resolve) =>
        clock.after(10_000, () => resolve({ rows: [{ n: 1 }] })),
      ),
  };
  const session = new GivenSession(client, environmentOf(clock), LIMIT_MS);
  const longer = session.run({ name: "", text: "SELECT 1", givenClientLimitMs: 30_000 });
  const usual = session.run({ name: "", text: "SELECT 1" }).catch((error: unknown) => String(error));
  await clock.advance(LIMIT_MS);
  expect(await usual).toContain("no answer within 1500 ms");
  await clock.advance(10_000);
  expect(await longer).toEqual([{ n: 1 }]);
});
