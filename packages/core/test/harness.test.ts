import { createHarness } from "@payhooks/core/testing";
import { expect, it } from "vitest";

it("runs a merchant's handler once per event, and again only after a crash", async () => {
  const effects: string[] = [];
  const t = await createHarness({
    register: (receiver) =>
      receiver.onDeposit(
        async (deposit, ctx) => void effects.push(`${deposit.referenceId} ${ctx.effectId} ${ctx.attempt}`),
      ),
  });
  const delivery = await t.deposit({ referenceId: "o-1" });
  expect(delivery).toMatchObject({ status: 200, outcome: "done", ran: ["deposit"] });
  expect(await t.redeliver(delivery)).toMatchObject({ status: 200, outcome: "done", ran: [] });
  expect(await t.advance("1h")).toEqual([]);
  expect(await t.crashAfter("deposit", delivery)).toMatchObject({ outcome: "done", ran: ["deposit"] });
  const [first, second] = effects.map((line) => line.split(" "));
  expect(effects).toHaveLength(2);
  expect(second?.[1]).toBe(first?.[1]);
  expect([first?.[2], second?.[2]]).toEqual(["1", "2"]);
});
