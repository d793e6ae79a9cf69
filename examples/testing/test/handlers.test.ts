import {
  callbackFields,
  createHarness,
  createTestKeys,
  forgedCallback,
  type Harness,
  resplitPair,
} from "@payhooks/core/testing";
import { beforeEach, expect, it } from "vitest";
import { MemoryOrders, registerShop } from "../src/shop.ts";

const keys = createTestKeys(); // takes some tenths of a second: one pair for the whole file

let orders: MemoryOrders;
let t: Harness;
beforeEach(async () => {
  orders = new MemoryOrders(["order-1"]);
  t = await createHarness({ keys, register: (receiver) => registerShop(receiver, orders) });
});

it("books a deposit once, however often it is delivered", async () => {
  const delivery = await t.deposit({ referenceId: "order-1", amount: "10.500000" });
  expect(delivery).toMatchObject({ status: 200, outcome: "done", ran: ["deposit"] });
  expect(await t.redeliver(delivery)).toMatchObject({ status: 200, outcome: "done", ran: [] });
  expect(orders.booked).toEqual(["10.500000 for order-1"]);
});

it("books nothing when a deposit fails", async () => {
  await t.deposit({ referenceId: "order-1", status: "PENDING" });
  await t.deposit({ referenceId: "order-1", status: "FAILED" });
  expect(orders.booked).toEqual([]);
});

it("looks again every hour for an order that is not there yet", async () => {
  expect(await t.deposit({ referenceId: "order-2" })).toMatchObject({ status: 200, outcome: "retrying" });
  expect(await t.advance("2h")).toEqual(["deposit", "deposit"]);
  orders.open("order-2");
  expect(await t.advance("1h")).toEqual(["deposit"]);
  expect(orders.booked).toEqual(["10.500000 for order-2"]);
});

it("leaves an order that never comes to a person, after 25 attempts", async () => {
  await t.deposit({ referenceId: "order-3" });
  expect(await t.advance("2d")).toHaveLength(24);
  expect(await t.held()).toMatchObject([{ reason: "exhausted" }]);
});

it("books once when the process dies after the handler, before that is stored", async () => {
  const delivery = await t.deposit({ referenceId: "order-1" });
  // The handler does run a second time, in another process, with the same effectId.
  expect(await t.crashAfter("deposit", delivery)).toMatchObject({ outcome: "done", ran: ["deposit"] });
  expect(orders.booked).toHaveLength(1);
});

it("believes no forgery", async () => {
  const changed = forgedCallback(callbackFields(), { amount: "9999.000000" }, keys.privateKey);
  expect(await t.deliver("payments", changed)).toMatchObject({ status: 401, code: "ERR_SIGNATURE_INVALID" });
  // The signature of a FAILED deposit, put under a SUCCESS that it fits as well.
  const { forged } = resplitPair("order-1", keys.privateKey);
  expect(await t.deliver("payments", forged)).toMatchObject({ status: 200, outcome: "held", ran: [] });
  expect(orders.booked).toEqual([]);
});
