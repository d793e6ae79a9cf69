import { github, paystack, shopify, slack, standardWebhooks, stripe } from "@payhooks/core/sources";
import { createHarness, signers } from "@payhooks/core/testing";
import { expect, it, onTestFinished } from "vitest";

const secret = `whsec_${Buffer.from("a secret of twenty-four bytes").toString("base64")}`;
const ready = { standardWebhooks, stripe, github, shopify, paystack, slack };
type Kind = keyof typeof ready;

it.each(Object.keys(ready) as Kind[])(
  "the harness takes what signers.%s has signed, and retries its handlers",
  async (kind) => {
    const ran: unknown[] = [];
    const t = await createHarness({
      receiver: { sources: { any: ready[kind]({ secret }) } },
      register: (receiver) =>
        receiver.on("any", "paid", ({ data }) => {
          ran.push(data);
          if (ran.length === 1) throw new Error("down");
        }),
    });
    onTestFinished(() => t.close());
    const sent = signers[kind]({ secret })("paid", { id: 7 }, { id: "e-1", at: new Date(t.clock.now()) });
    const delivery = await t.deliver("any", sent);
    expect(delivery).toMatchObject({ status: 200, flow: "any", outcome: "retrying", ran: ["paid"] });
    expect(await t.redeliver(delivery)).toMatchObject({ status: 200 });
    await t.advance("1h");
    expect(ran).toEqual([expect.objectContaining({ id: 7 }), expect.objectContaining({ id: 7 })]);
    const other = signers[kind]({ secret: `whsec_${Buffer.from("another secret").toString("base64")}` });
    const forged = await t.deliver("any", other("paid", { id: 8 }, { at: new Date(t.clock.now()) }));
    expect(forged).toMatchObject({ status: 401, code: "ERR_SIGNATURE_INVALID", outcome: "refused" });
  },
);

it("the harness finds a header whatever the case of its name, as a server does", async () => {
  const t = await createHarness({
    receiver: { sources: { any: github({ secret }) } },
    register: (receiver) => receiver.on("any", "paid", () => {}),
  });
  onTestFinished(() => t.close());
  const { headers, rawBody } = signers.github({ secret })("paid", { id: 7 });
  const upperCase = Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value] as const);
  const delivery = await t.deliver("any", { headers: Object.fromEntries(upperCase), rawBody });
  expect(delivery).toMatchObject({ status: 200, outcome: "done", ran: ["paid"] });
});
