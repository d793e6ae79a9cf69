import { describe, expect, it } from "vitest";
import { type ClientError, createClient } from "../src/index.ts";
import { apiKey, checkout, keys, payment, withdrawal } from "./fixtures.ts";
import { errorOf, json, startService } from "./service.ts";

/** Sends what the types would not let through, and expects that nothing reaches the service. */
async function refusal(
  method: "pay" | "withdraw" | "checkout" | "setWebhookSettings",
  request: unknown,
  options: { allowHttpLoopback?: boolean; allowUnknownMedium?: boolean } = {},
): Promise<ClientError> {
  const service = await startService(json({}));
  const client = createClient({ baseUrl: service.url, ...keys, apiKey, ...options });
  const error = await errorOf<ClientError>((client[method] as (body: unknown) => Promise<unknown>)(request));
  expect(service.seen).toEqual([]);
  expect(error.message).toContain(error.fix);
  return error;
}

async function accepted(
  overrides: object,
  options: { allowHttpLoopback?: boolean; allowUnknownMedium?: boolean } = {},
) {
  const service = await startService(json({}));
  const client = createClient({ baseUrl: service.url, ...keys, ...options });
  await client.pay({ ...payment, ...overrides });
  return JSON.parse(service.seen[0]?.body ?? "") as Record<string, unknown>;
}

describe("a value of another kind", () => {
  it.each([
    ["pay", { ...payment, amount: {} }, "amount is an object."],
    ["pay", { ...payment, amount: ["10.50"] }, "amount is an array."],
    ["pay", { ...payment, currency: {} }, "currency is an object."],
    ["pay", { ...payment, phone_number: 251911000000 }, "phone_number is a number."],
    ["pay", { ...payment, medium: {} }, "medium is an object."],
    ["pay", { ...payment, reference: [] }, "reference is an array."],
    ["pay", { ...payment, description: {} }, "description is an object."],
    ["pay", { ...payment, callback_url: {} }, "callback_url is an object, not text."],
    ["pay", { ...payment, currency: "USD", merchant_pays_fee: {} }, "merchant_pays_fee is an object."],
    ["checkout", { ...checkout, supported_mediums: {} }, "supported_mediums is an object."],
    ["checkout", { ...checkout, supported_mediums: [null] }, "supported_mediums is null."],
    [
      "setWebhookSettings",
      { webhook_url: "https://shop.example/", webhook_secret: {}, webhook_enabled: true },
      "webhook_secret is an object.",
    ],
  ] as const)("is named: %s %j", async (method, request, message) => {
    expect((await refusal(method, request)).message).toContain(message);
  });

  it.each([
    [{ publicKey: {} }, "publicKey is an object."],
    [{ allowHttpLoopback: null }, "allowHttpLoopback is null."],
    [{ baseUrl: [] }, "baseUrl is an array, not text."],
  ])("is named among the options: %j", (options, message) => {
    const make = () => createClient({ baseUrl: "https://api.example.com", ...keys, ...(options as object) });
    expect(make).toThrow(message);
  });
});

describe("amount", () => {
  it.each([
    ["10.5", 'Write both decimals: "10.50".'],
    ["10", 'Write both decimals: "10.00".'],
    ["10.", 'Write both decimals: "10.00".'],
    ["10.505", "digits, a point and two decimals"],
    ["1,000.00", "digits, a point and two decimals"],
    ["010.00", "digits, a point and two decimals"],
    ["-1.00", "digits, a point and two decimals"],
    ["+1.00", "digits, a point and two decimals"],
    ["1e2", "digits, a point and two decimals"],
    [" 1.00", "digits, a point and two decimals"],
    ["1.00\n", "digits, a point and two decimals"],
    ["١٠.٠٠", "digits, a point and two decimals"],
    ["NaN", "digits, a point and two decimals"],
    ["0.00", "greater than zero"],
    [10.5, "decimal string"],
    [10n, "decimal string"],
    ["12345678901234.56", 'amountAs: "string"'],
  ])("refuses %s", async (amount, fix) => {
    const error = await refusal("pay", { ...payment, amount });
    expect(error).toMatchObject({ name: "ClientError", code: "ERR_AMOUNT_INVALID", field: "amount" });
    expect(error.fix).toContain(fix);
  });

  it.each(["withdraw", "checkout"] as const)("is checked by %s too", async (method) => {
    const base = method === "withdraw" ? withdrawal : checkout;
    expect((await refusal(method, { ...base, amount: "1" })).code).toBe("ERR_AMOUNT_INVALID");
  });

  it.each(["0.01", "1234567890123.45", "100.00"])("accepts %s", async (amount) => {
    expect((await accepted({ amount })).amount).toBe(Number(amount));
  });
});

describe("reference", () => {
  it.each([
    ["a&status=SUCCESS", "ERR_REFERENCE_INVALID", "signed"],
    ["x".repeat(101), "ERR_REFERENCE_INVALID", "at most 100"],
    ["a\u0007", "ERR_REFERENCE_INVALID", "letters"],
    ["a\u2028b", "ERR_REFERENCE_INVALID", "letters"],
    [" a", "ERR_REFERENCE_INVALID", "Trim"],
    ["..", "ERR_REFERENCE_INVALID", "another"],
    ["", "ERR_FIELD_MISSING", "Pass"],
    [undefined, "ERR_FIELD_MISSING", "Pass"],
    [7, "ERR_REFERENCE_INVALID", "string"],
  ])("refuses %j", async (reference, code, fix) => {
    const error = await refusal("pay", { ...payment, reference });
    expect(error).toMatchObject({ code, field: "reference" });
    expect(error.fix).toContain(fix);
    expect((await refusal("checkout", { ...checkout, reference })).code).toBe(code);
    expect((await refusal("withdraw", { ...withdrawal, reference })).code).toBe(code);
  });

  it("accepts 100 characters", async () => {
    const reference = "r".repeat(100);
    expect((await accepted({ reference })).reference).toBe(reference);
  });
});

describe("currency, medium and phone number", () => {
  it.each(["EUR", "etb", "", 1])("refuses the currency %j", async (currency) => {
    expect(await refusal("pay", { ...payment, currency })).toMatchObject({ code: "ERR_CURRENCY_INVALID" });
  });

  it.each(["mpesa", "NEWPAY", "", " CBE", 3])("refuses the medium %j", async (medium) => {
    expect(await refusal("pay", { ...payment, medium })).toMatchObject({ code: "ERR_MEDIUM_INVALID" });
  });

  it("lets a new medium pass when told so, but not an empty one", async () => {
    const options = { allowUnknownMedium: true };
    expect((await accepted({ medium: "NEWPAY" }, options)).medium).toBe("NEWPAY");
    expect((await refusal("pay", { ...payment, medium: "" }, options)).code).toBe("ERR_MEDIUM_INVALID");
  });

  it.each([[[]], [undefined], ["CBE"], [["CBE", "CBE"]], [["CBE", "XYZ"]]])(
    "refuses the offer of mediums %j",
    async (supported_mediums) => {
      const { code } = await refusal("checkout", { ...checkout, supported_mediums });
      expect(code).toBe(supported_mediums === undefined ? "ERR_FIELD_MISSING" : "ERR_MEDIUM_INVALID");
    },
  );

  it.each([
    "+251911000000",
    "0911000000",
    "251-911-000000",
    "251 911 000000",
    "12345",
    "2".repeat(16),
    "25191100000a",
    251,
  ])("refuses the phone number %j, and does not repeat it", async (phone_number) => {
    const error = await refusal("pay", { ...payment, phone_number });
    expect(error).toMatchObject({ code: "ERR_PHONE_NUMBER_INVALID", field: "phone_number" });
    expect(error.message).not.toContain(String(phone_number));
  });

  it.each(["251911000000", "251 911000000", "1 5550100"])(
    "sends the phone number %j without a space",
    async (phone_number) => {
      expect((await accepted({ phone_number })).phone_number).toBe(phone_number.replace(" ", ""));
    },
  );
});

describe("callback_url", () => {
  it.each([
    "http://merchant.example/cb",
    "http://localhost:3000/cb",
    "ftp://merchant.example/cb",
    "/callbacks/pay",
    "https:merchant.example",
    "https://merchant.example/c b",
    "https://merchant.example/cb\n",
    "https://merchant.example/cb?a=1&event=5",
    "https://merchant.example/cb?a=1&callbackUrl=x",
    "",
    5,
  ])("refuses %j", async (callback_url) => {
    expect(await refusal("pay", { ...payment, callback_url })).toMatchObject({
      code: "ERR_CALLBACK_URL_INVALID",
      field: "callback_url",
    });
  });

  it.each(["https://merchant.example/cb?event=5&a=1", "https://merchant.example/cb?a=1&userId=2"])(
    "sends %j unchanged",
    async (callback_url) => {
      expect((await accepted({ callback_url })).callback_url).toBe(callback_url);
    },
  );

  it.each(["http://localhost:3000/cb", "http://127.0.0.1/cb", "http://[::1]:1/cb"])(
    "accepts %j for tests, when told so",
    async (callback_url) => {
      const options = { allowHttpLoopback: true };
      expect((await accepted({ callback_url }, options)).callback_url).toBe(callback_url);
      const elsewhere = { ...payment, callback_url: "http://merchant.example/cb" };
      expect((await refusal("pay", elsewhere, options)).code).toBe("ERR_CALLBACK_URL_INVALID");
    },
  );
});

describe("redirects", () => {
  it.each([
    { success: "https://a.example", failed: "https://a.example" },
    { success_url: "/thanks" },
    { success_url: "javascript:alert(1)" },
    "https://a.example",
  ])("of a direct payment refuse %j", async (redirects) => {
    expect((await refusal("pay", { ...payment, redirects })).code).toBe("ERR_REDIRECTS_INVALID");
  });

  it.each([
    { success: "https://a.example" },
    { success_url: "https://a.example", failure_url: "https://a.example" },
    { success: "https://a.example", failed: "nowhere" },
  ])("of a checkout refuse %j", async (redirects) => {
    expect((await refusal("checkout", { ...checkout, redirects })).code).toBe("ERR_REDIRECTS_INVALID");
  });

  it("of a checkout are required", async () => {
    const { redirects: _, ...rest } = checkout;
    expect(await refusal("checkout", rest)).toMatchObject({ code: "ERR_FIELD_MISSING", field: "redirects" });
  });

  it("of a direct payment may be one only, also into an app", async () => {
    const redirects = { success_url: "shop://thanks" };
    expect((await accepted({ redirects })).redirects).toEqual(redirects);
  });
});

describe("other fields", () => {
  it.each([
    [{ merchant_pays_fee: true }, "ERR_FIELD_INVALID", "USD"],
    [{ currency: "USD", merchant_pays_fee: "yes" }, "ERR_FIELD_INVALID", "true or false"],
    [{ description: 5 }, "ERR_FIELD_INVALID", "string"],
    [{ callbackUrl: "https://a.example" }, "ERR_FIELD_UNKNOWN", "Write callback_url."],
    [{ colour: "red" }, "ERR_FIELD_UNKNOWN", "extra"],
    [{ extra: [] }, "ERR_FIELD_INVALID", "object"],
    [{ extra: { amount: 1 } }, "ERR_FIELD_INVALID", "beside extra"],
    [{ extra: { big: 1n } }, "ERR_FIELD_INVALID", "JSON"],
  ])("refuse %o", async (overrides, code, fix) => {
    const error = await refusal("pay", { ...payment, ...overrides });
    expect(error.code).toBe(code);
    expect(error.fix).toContain(fix);
  });

  it("refuse a value that is not a request at all", async () => {
    for (const request of [undefined, null, "x", []]) {
      expect((await refusal("pay", request)).code).toBe("ERR_FIELD_MISSING");
    }
  });

  it.each(["amount", "currency", "phone_number", "medium", "reference"])("miss %s", async (name) => {
    const error = await refusal("pay", { ...payment, [name]: undefined });
    expect(error).toMatchObject({ code: "ERR_FIELD_MISSING", field: name });
  });

  it.each([
    [{ webhook_url: "http://merchant.example" }, "ERR_CALLBACK_URL_INVALID"],
    [{ webhook_secret: "  " }, "ERR_FIELD_INVALID"],
    [{ webhook_secret: "abc\n" }, "ERR_FIELD_INVALID"],
    [{ webhook_secret: undefined }, "ERR_FIELD_MISSING"],
    [{ webhook_enabled: "true" }, "ERR_FIELD_INVALID"],
    [{ extra: {} }, "ERR_FIELD_UNKNOWN"],
  ])("of webhook settings refuse %o", async (overrides, code) => {
    const good = {
      webhook_url: "https://merchant.example/w",
      webhook_secret: "s3cret-value",
      webhook_enabled: false,
    };
    const error = await refusal("setWebhookSettings", { ...good, ...overrides });
    expect(error.code).toBe(code);
    expect(error.message).not.toContain("abc");
  });
});

describe("options", () => {
  it.each([
    { baseUrl: "api.example.com" },
    { baseUrl: "http://api.example.com" },
    { baseUrl: "https://user:pass@api.example.com" },
    { baseUrl: "https://api.example.com?x=1" },
    { baseUrl: "https://api.example.com/api/v2" },
    { baseUrl: "https://api.example.com/api/v2/" },
    { publicKey: "pk:sk" },
    { secretKey: "sk 1" },
    { secretKey: " " },
    { secretKey: "schlüssel" },
    { publicKey: "-----BEGIN PUBLIC KEY-----\nMIIB" },
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { attempts: 0 },
    { attempts: 1.5 },
    { maxAnswerBytes: -1 },
    { amountAs: "float" },
    { allowHttpLoopback: "yes" },
    { timeoutMS: 5 },
  ])("refuse %o when the client is made", (overrides) => {
    const make = () =>
      createClient({ baseUrl: "https://api.example.com", ...keys, ...(overrides as object) });
    expect(make).toThrow(expect.objectContaining({ code: "ERR_OPTION_INVALID" }));
  });

  it.each(["baseUrl", "publicKey", "secretKey"])("let %s be missing until it is needed", async (name) => {
    for (const value of [undefined, ""]) {
      const client = createClient({ baseUrl: "https://api.example.com", ...keys, [name]: value });
      await expect(client.transactionById("t")).rejects.toMatchObject({
        code: "ERR_OPTION_MISSING",
        field: name,
      });
    }
  });

  it("let the apiKey be missing until it is needed", async () => {
    const client = createClient({ baseUrl: "https://api.example.com", apiKey: undefined });
    await expect(client.webhookSettings()).rejects.toMatchObject({
      code: "ERR_OPTION_MISSING",
      field: "apiKey",
    });
  });

  it("without any key are a mistake", () => {
    const options = { baseUrl: "https://api.example.com" } as { baseUrl: string; apiKey: string };
    expect(() => createClient(options)).toThrow(expect.objectContaining({ code: "ERR_OPTION_MISSING" }));
  });

  it("with an invalid timeoutMs are refused before anything is sent", async () => {
    const service = await startService(json({}));
    const client = createClient({ baseUrl: service.url, ...keys });
    await expect(client.pay(payment, { timeoutMs: -1 })).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
    });
    expect(service.seen).toEqual([]);
  });
});
