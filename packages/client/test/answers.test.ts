import { describe, expect, it } from "vitest";
import { createClient, type Transaction } from "../src/index.ts";
import { keys, notFound, wireTransaction } from "./fixtures.ts";
import { json, startService } from "./service.ts";

async function lookUp(body: unknown, status = 200): Promise<Transaction | null> {
  const service = await startService(json(body, status));
  const client = createClient({ baseUrl: service.url, ...keys, maxAnswerBytes: 10_000, attempts: 1 });
  return client.transactionByReference("order-1");
}

const withAmount = (token: string): string =>
  `{"success": true, "data": ${JSON.stringify(wireTransaction).replace('"base_amount":10.5', `"base_amount" : ${token} `)}}`;

describe("a transaction", () => {
  it("has every field of the specification, and keeps others apart", async () => {
    const data = { ...wireTransaction, fee: 0.1, nested: { a: 1 } };
    const { base_amount: _, ...rest } = wireTransaction;
    expect(await lookUp({ success: true, data })).toEqual({
      ...rest,
      base_amount: "10.5",
      extra: { fee: 0.1, nested: { a: 1 } },
    });
  });

  it.each(["10.50", "10", "0.1000000000000000055", "12345678901234567890.12", "1e3", '"10.500000"'])(
    "has the amount %s as it was written",
    async (token) => {
      expect((await lookUp(withAmount(token)))?.base_amount).toBe(token.replaceAll('"', ""));
    },
  );

  it("is not misled by a message that looks like JSON, or by nested names", async () => {
    const message = '"base_amount":999,"data":{"base_amount":999}';
    const data = { nested: { base_amount: 1 }, ...wireTransaction, message, list: [{ base_amount: 2 }] };
    const transaction = await lookUp({ data0: { base_amount: 7 }, success: true, data });
    expect(transaction).toMatchObject({ base_amount: "10.5", message });
  });

  it("reads a field that is null or left out as empty", async () => {
    const { id, reference, type, status, base_amount, updated_at } = wireTransaction;
    const data = { id, reference, type, status, base_amount, updated_at, callback_url: null };
    expect(await lookUp({ success: true, data })).toEqual({
      ...data,
      base_amount: "10.5",
      merchant_id: "",
      phone_number: "",
      medium: "",
      message: "",
      details: { RawMessage: null, Valid: false },
      callback_url: "",
      success_url: "",
      failed_url: "",
      webhook_received: false,
      created_at: "",
      extra: {},
    });
  });

  it.each(["SUCCESS", "FAILED", "PENDING", "CANCELLED"])("may be %s", async (status) => {
    expect((await lookUp({ success: true, data: { ...wireTransaction, status } }))?.status).toBe(status);
  });

  it.each([
    ["no object", "7"],
    ["no envelope", wireTransaction],
    ["no data", { success: true }],
    ["an empty body", ""],
    ["no id", { success: true, data: { ...wireTransaction, id: undefined } }],
    ["no reference", { success: true, data: { ...wireTransaction, reference: null } }],
    ["no type", { success: true, data: { ...wireTransaction, type: "" } }],
    ["no amount", { success: true, data: { ...wireTransaction, base_amount: null } }],
    ["a number for text", { success: true, data: { ...wireTransaction, medium: 5 } }],
    ["text for a boolean", { success: true, data: { ...wireTransaction, webhook_received: "no" } }],
    ["details that are none", { success: true, data: { ...wireTransaction, details: "x" } }],
    ["a status that is not listed", { success: true, data: { ...wireTransaction, status: "REVERSED" } }],
  ])("is not read from %s", async (_what, body) => {
    await expect(lookUp(body)).rejects.toMatchObject({ code: "ERR_ANSWER_UNREADABLE", httpStatus: 200 });
  });

  it("of another reference is not taken for the one that was asked for", async () => {
    await expect(
      lookUp({ success: true, data: { ...wireTransaction, reference: "order-2" } }),
    ).rejects.toMatchObject({
      code: "ERR_ANSWER_MISMATCH",
    });
  });
});

describe("a look-up that finds nothing", () => {
  it.each([200, 404, 400])("is null, whatever the HTTP status: %i", async (status) => {
    expect(await lookUp(notFound, status)).toBeNull();
  });

  it("by id is null as well", async () => {
    const service = await startService(json(notFound));
    expect(await createClient({ baseUrl: service.url, ...keys }).transactionById("t-1")).toBeNull();
  });

  it.each([
    [404, { success: false, data: { message: "x" } }, "ERR_REFUSED"],
    [404, "<html>not found</html>", "ERR_REFUSED"],
    [200, { success: true, data: { message: "x", id: "t" } }, "ERR_ANSWER_UNREADABLE"],
    [200, { success: true, data: {} }, "ERR_ANSWER_UNREADABLE"],
  ])("is nothing else: HTTP %i with %j", async (status, body, code) => {
    await expect(lookUp(body, status)).rejects.toMatchObject({ code, httpStatus: status });
  });
});

describe("an answer", () => {
  it("is read up to maxAnswerBytes", async () => {
    await expect(lookUp({ success: true, data: "x".repeat(20_000) })).rejects.toMatchObject({
      code: "ERR_ANSWER_TOO_LARGE",
    });
  });

  it.each([["<html>"], [Buffer.from([0x22, 0xff, 0x22])]])("must be JSON in UTF-8: %s", async (bytes) => {
    const service = await startService((response) => response.end(bytes));
    const client = createClient({ baseUrl: service.url, ...keys });
    await expect(client.transactionById("t")).rejects.toMatchObject({
      code: "ERR_ANSWER_NOT_JSON",
      httpStatus: 200,
    });
  });
});
