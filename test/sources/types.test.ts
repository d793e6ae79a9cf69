/**
 * Types that compile and types that do not, with schemas of two libraries. The compiler checks this file; the test runs what it
 * describes.
 */
import { type AnyReceiver, createReceiver } from "@payhooks/core";
import { webhooks as onFetch } from "@payhooks/core/fetch";
import {
  github,
  hmac,
  source,
  standardWebhooks,
  stripe,
  typesOnly,
  unsafeUnsigned,
} from "@payhooks/core/sources";
import { webhooks as onExpress } from "@payhooks/express";
import { webhooks as onHono } from "@payhooks/hono";
import { webhooks as onNext } from "@payhooks/next";
import * as v from "valibot";
import { expect, it } from "vitest";
import { z } from "zod";
import { silent } from "../support/silent.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<_T extends true>(): void {}

const secret = "whsec_bG9uZyBlbm91Z2ggZm9yIGEgdGVzdA==";
const InvoicePaid = z.object({ invoice: z.string(), amount: z.number().transform(String) });

function made() {
  return createReceiver({
    logger: silent,
    sources: {
      billing: standardWebhooks({
        secret,
        events: { "invoice.paid": InvoicePaid, "invoice.voided": v.object({ id: v.string() }) },
      }),
      forge: github({
        secret,
        events: typesOnly<{ push: { ref: string }; issues: { action: "opened" | "closed" } }>(),
      }),
      cards: stripe({ secret: [secret, undefined] }),
      kyc: source({
        verify: hmac({ header: "x-kyc-signature", format: { kind: "plain", prefix: "sha256=" }, secret }),
        events: { applicant: z.object({ level: z.number() }) },
        stages: [["started"], ["reviewing"], ["passed", "failed"]],
        read: ({ body }) => {
          const { id, state } = body as { id: string; state: "started" | "passed" };
          return { name: "applicant", id, status: state, data: body, reference: id };
        },
      }),
    },
  });
}

it("a handler gets events typed by their source and name", () => {
  const receiver = made();
  receiver
    .on("billing", "invoice.paid", (event, { effectId }) => {
      same<Equal<typeof event.data.amount, string>>();
      same<Equal<typeof event.flow, "billing">>();
      return effectId;
    })
    .on("billing", "invoice.voided", ({ data }) => data.id.toUpperCase(), { name: "voided", maxAttempts: 3 });
  receiver.on("billing", "*", (event) => {
    if (event.event === "invoice.paid") same<Equal<typeof event.data, { invoice: string; amount: string }>>();
    else same<Equal<typeof event.data, { id: string }>>();
  });
  receiver.on("forge", "issues", ({ data }) => same<Equal<typeof data.action, "opened" | "closed">>());
  receiver.on("cards", "charge.refunded", (event) => {
    same<Equal<typeof event.data, unknown>>();
    same<Equal<typeof event.event, "charge.refunded">>();
  });
  receiver.on("cards", "*", (event) => same<Equal<typeof event.event, string>>());
  receiver.on("kyc", "applicant", ({ data, status }) => [data.level, status]);
  receiver.ignore("forge", "push").ignore("DEPOSIT");
  const mounts = [
    onExpress(receiver, "billing", { tenant: (request) => request.path }),
    onHono(receiver, "cards"),
    onNext(() => receiver, "forge"),
    onFetch(async () => receiver, "kyc"),
  ];
  const any: AnyReceiver = receiver;
  expect([mounts.map((mount) => typeof mount), Object.keys(any.sources)]).toEqual([
    ["function", "function", "function", "function"],
    ["billing", "forge", "cards", "kyc"],
  ]);
});

it("the type checker refuses what cannot be meant", () => {
  const receiver = made();
  const wrong = [
    // @ts-expect-error a misspelt name
    () => receiver.on("billing", "invoice.payed", () => {}),
    // @ts-expect-error a source that is not there
    () => receiver.on("biling", "invoice.paid", () => {}),
    // @ts-expect-error a source that is not there
    () => onExpress(receiver, "cardz"),
    // @ts-expect-error an unsigned source says why
    () => unsafeUnsigned({}),
    () =>
      source({
        verify: unsafeUnsigned({ because: "t" }),
        read: () => ({ name: "x", data: 1 }),
        // @ts-expect-error a misspelt option
        unhandeld: "hold",
      }),
  ];
  for (const call of wrong) expect(call).toThrow();
  const unchecked = [
    // @ts-expect-error unknown data is not used unchecked
    () => receiver.on("cards", "charge.refunded", ({ data }) => data.id),
    // @ts-expect-error data has another type
    () => receiver.on("billing", "invoice.paid", ({ data }) => data.amount.toFixed(2)),
    // @ts-expect-error every name cannot be ignored
    () => receiver.ignore("forge", "*"),
    () =>
      source({
        verify: unsafeUnsigned({ because: "test" }),
        stages: [["open"], ["closed"]],
        // @ts-expect-error a status that is in no stage
        read: () => ({ name: "x", data: 1, status: "shut" }),
      }),
    () =>
      source({
        verify: unsafeUnsigned({ because: "test" }),
        // @ts-expect-error a status without stages
        read: () => ({ name: "x", data: 1, status: "open" }),
      }),
    // @ts-expect-error read is synchronous, since it runs again at each run
    () => source({ verify: unsafeUnsigned({ because: "t" }), read: async () => ({ name: "x", data: 1 }) }),
  ];
  expect(unchecked).toHaveLength(6);
});
