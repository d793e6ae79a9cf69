import { serviceNames } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import { createClient, type Medium } from "../src/index.ts";
import { checkout, keys, payment } from "./fixtures.ts";
import { json, startService } from "./service.ts";

const names = serviceNames({
  connect: { pathSegment: "acmeconnect" },
  api: { medium: "ACME", transactionIdFields: ["acme_transaction_id", "transaction_id"] },
});

describe("a client under the names of a deployment", () => {
  it("finds the id of a payment under them, in their order, and under no other", async () => {
    for (const [body, transactionId] of [
      [{ success: true, acme_transaction_id: "t-1" }, "t-1"],
      [{ success: true, data: { transaction_id: "t-2", acme_transaction_id: "t-1" } }, "t-1"],
      [{ success: true, acme_transaction_id: null, transaction_id: "t-2" }, "t-2"],
      [{ success: true, id: "t-3" }, undefined],
    ] as const) {
      const service = await startService(json(body));
      const client = createClient({ baseUrl: service.url, ...keys, names });
      expect((await client.pay(payment)).transactionId).toBe(transactionId);
      expect((await client.checkout(checkout)).transactionId).toBe(transactionId);
    }
  });

  it("takes a FAILED with an id under them for an answer, and one without for a failure", async () => {
    const service = await startService((response, seen, count) =>
      json({ status: "FAILED", [count === 1 ? "acme_transaction_id" : "id"]: "t-1" })(response, seen, count),
    );
    const client = createClient({ baseUrl: service.url, ...keys, names });
    expect((await client.pay(payment)).transactionId).toBe("t-1");
    await expect(client.pay(payment)).rejects.toMatchObject({ code: "ERR_OUTCOME_UNKNOWN" });
  });

  it("writes the service's own medium as it does, by either name", async () => {
    const service = await startService(json({ success: true }));
    const client = createClient<Medium | "ACME">({ baseUrl: service.url, ...keys, names });
    await client.pay({ ...payment, medium: "PAY" });
    await client.pay({ ...payment, medium: "ACME" });
    await client.checkout({ ...checkout, supported_mediums: ["PAY", "CBE"] });
    expect(service.seen.map(({ body }) => JSON.parse(body))).toMatchObject([
      { medium: "ACME" },
      { medium: "ACME" },
      { supported_mediums: ["ACME", "CBE"] },
    ]);
    const twice = client.checkout({ ...checkout, supported_mediums: ["PAY", "ACME"] });
    await expect(twice).rejects.toMatchObject({ code: "ERR_MEDIUM_INVALID" });
    const plain = createClient<Medium | "ACME">({ baseUrl: service.url, ...keys });
    await expect(plain.pay({ ...payment, medium: "ACME" })).rejects.toMatchObject({
      code: "ERR_MEDIUM_INVALID",
    });
  });

  it("asks for the webhook settings at their path", async () => {
    const service = await startService(json({ success: true }));
    await createClient({ baseUrl: service.url, ...keys, names }).webhookSettings();
    expect(service.seen[0]?.path).toBe("/api/v2/acmeconnect/connected-accounts/webhook-settings");
  });

  it.each([null, {}, { api: { medium: "ACME" } }, "acme"])(
    "refuses %j, which serviceNames did not make",
    (wrong) => {
      const options = { baseUrl: "https://api.example.com", ...keys, names: wrong as typeof names };
      expect(() => createClient(options)).toThrow(
        expect.objectContaining({ code: "ERR_OPTION_INVALID", field: "names" }),
      );
    },
  );
});
