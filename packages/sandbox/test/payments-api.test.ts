import { describe, expect, it } from "vitest";
import { call, checkout, pay, payment, receiver, SETTINGS_PATH, start } from "./support/start.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe("the key of a call", () => {
  const paths = [
    ["POST", "/api/v2/payment/direct"],
    ["POST", "/api/v2/payment/withdrawal"],
    ["POST", "/api/v2/payment/checkout"],
    ["GET", "/api/v2/payment/transaction/some-id"],
    ["GET", "/api/v2/payment/transaction/ref/some-reference"],
    ["PUT", "/api/v2/connect/connected-accounts/webhook-settings"],
    ["GET", "/api/v2/connect/connected-accounts/webhook-settings"],
  ] as const;

  it.each(paths)(
    "%s %s answers 401 without a key, with a wrong one and with the other part's",
    async (method, path) => {
      const sandbox = await start();
      const { apiKey, connectApiKey } = sandbox.keys;
      const [publicPart = "", secretPart = ""] = apiKey.split(":");
      const other = path.includes("/connect/") ? "ck_other" : connectApiKey;
      const body = method === "GET" ? undefined : payment();
      for (const key of [undefined, "", publicPart, secretPart, `${publicPart}:wrong`, `${apiKey}x`, other]) {
        const answer = await call(sandbox, method, path, body, key === undefined ? {} : { "X-API-Key": key });
        expect(answer.status).toBe(401);
        const message = expect.stringMatching(/API key/);
        expect(answer.body).toEqual({
          success: false,
          status: "ERROR",
          message,
          error_code: "UNAUTHORIZED",
          data: { message },
        });
      }
      expect(sandbox.transactions.list()).toEqual([]);
    },
  );

  it("of a payment is also one for the connected accounts", async () => {
    const sandbox = await start();
    const key = { "X-API-Key": sandbox.keys.apiKey };
    expect((await call(sandbox, "GET", SETTINGS_PATH, undefined, key)).status).toBe(200);
  });
});

describe("POST /api/v2/payment/direct", () => {
  it("answers with the id that the look-ups accept, and both give the full transaction", async () => {
    const sandbox = await start();
    const body = payment({
      description: "Two coffees",
      callback_url: "https://merchant.example/callbacks",
      redirects: { success_url: "https://shop.example/paid", failure_url: "https://shop.example/no" },
      merchant_pays_fee: true,
      currency: "USD",
      amount: 10.5,
    });
    sandbox.script(String(body.reference), "PENDING");
    const { status, body: answer } = await pay(sandbox, "POST", "/direct", body);
    expect(status).toBe(200);
    const { id } = answer.data;
    const envelope = {
      success: true,
      status: "SUCCESS",
      message: "The transaction is being processed.",
      reference_id: body.reference,
      transaction_id: id,
    };
    const others = { transaction_id: id, amount: 10.5, currency: "USD" };
    expect(answer).toEqual({
      ...envelope,
      data: {
        ...others,
        id: expect.stringMatching(UUID),
        reference: body.reference,
        type: "DEPOSIT",
        status: "PENDING",
        message: "The transaction is being processed.",
        medium: "TELEBIRR",
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        checkout_url: null,
        payment_url: null,
      },
    });
    const byReference = await pay(sandbox, "GET", `/transaction/ref/${body.reference}`);
    expect(byReference.status).toBe(200);
    expect(byReference.body).toEqual({
      success: true,
      data: {
        id: answer.data.id,
        merchant_id: sandbox.keys.merchantId,
        phone_number: "251 911234567",
        reference: body.reference,
        type: "DEPOSIT",
        medium: "TELEBIRR",
        message: "The transaction is being processed.",
        details: { RawMessage: null, Valid: true },
        status: "PENDING",
        base_amount: 10.5,
        callback_url: "https://merchant.example/callbacks",
        success_url: "https://shop.example/paid",
        failed_url: "https://shop.example/no",
        webhook_received: false,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    });
    const byId = await pay(sandbox, "GET", `/transaction/${id}`);
    expect(byId.body).toEqual({ ...envelope, data: { ...byReference.body.data, ...others } });
  });

  it.each(["MPESA", "TELEBIRR", "CBE", "ETHSWITCH", "CYBERSOURCE", "OROMIA_BANK", "AWASH", "PAY"])(
    "takes the medium %s",
    async (medium) => {
      const sandbox = await start();
      const { body } = await pay(sandbox, "POST", "/direct", payment({ medium }));
      expect(sandbox.transactions.get(body.data.id)?.transaction.medium).toBe(medium);
    },
  );

  it("can be held to one of the two published lists of mediums", async () => {
    const sandbox = await start({ mediums: ["MPESA", "PAY"] });
    expect((await pay(sandbox, "POST", "/direct", payment({ medium: "PAY" }))).status).toBe(200);
    expect((await pay(sandbox, "POST", "/direct", payment({ medium: "AWASH" }))).status).toBe(400);
  });

  it.each([
    ["10.50", "10.50"],
    [10.5, "10.50"],
    [7, "7.00"],
    ["0.01", "0.01"],
    ["999999999999.99", "999999999999.99"],
  ])("takes the amount %j", async (amount, kept) => {
    const sandbox = await start();
    const { body } = await pay(sandbox, "POST", "/direct", payment({ amount }));
    expect(sandbox.transactions.get(body.data.id)?.order.amount).toBe(kept);
  });

  it.each([
    ["is empty", ""],
    ["is long", "x".repeat(5_000)],
    ["has two lines", "two\nlines"],
  ])("takes a description that %s", async (_, description) => {
    const sandbox = await start();
    const { status, body } = await pay(sandbox, "POST", "/direct", payment({ description }));
    expect(status).toBe(200);
    expect(sandbox.transactions.get(body.data.id)?.order.description).toBe(description);
  });

  it.each([
    ["of an app", "myapp://paid"],
    ["with a password", "https://user:pass@shop.example/paid"],
    ["that is long", `https://shop.example/?x=${"y".repeat(3_000)}`],
  ])("takes a redirect %s", async (_, success_url) => {
    const sandbox = await start();
    const { body } = await pay(sandbox, "POST", "/direct", payment({ redirects: { success_url } }));
    const shown = await pay(sandbox, "GET", `/transaction/${body.data.id}`);
    expect(shown.body.data).toMatchObject({ success_url });
  });

  it.each([
    ["with a password", "https://user:pass@merchant.example/"],
    ["that is long", `https://merchant.example/?x=${"y".repeat(3_000)}`],
  ])("takes a callback address %s", async (_, callback_url) => {
    const sandbox = await start({ outcome: "PENDING" });
    expect((await pay(sandbox, "POST", "/direct", payment({ callback_url }))).status).toBe(200);
  });

  const long = "x".repeat(101);
  it.each([
    ["amount", { amount: undefined }, "is required"],
    ["amount", { amount: "10.5" }, "two places"],
    ["amount", { amount: "10" }, "two places"],
    ["amount", { amount: "10.505" }, "two places"],
    ["amount", { amount: 10.505 }, "two places"],
    ["amount", { amount: "1,000.00" }, "two places"],
    ["amount", { amount: "010.00" }, "two places"],
    ["amount", { amount: "9999999999999.99" }, "two places"],
    ["amount", { amount: 1e21 }, "two places"],
    ["amount", { amount: {} }, "two places"],
    ["amount", { amount: "0.00" }, "above 0"],
    ["amount", { amount: -1 }, "above 0"],
    ["currency", { currency: undefined }, "is required"],
    ["currency", { currency: "EUR" }, "must be one of ETB, USD"],
    ["currency", { currency: "etb" }, "must be one of"],
    ["phone_number", { phone_number: undefined }, "is required"],
    ["phone_number", { phone_number: "+251911234567" }, "must not start with +"],
    ["phone_number", { phone_number: "0911234567" }, "country code"],
    ["phone_number", { phone_number: "2519x" }, "country code"],
    ["phone_number", { phone_number: 251911234567 }, "country code"],
    ["medium", { medium: undefined }, "is required"],
    ["medium", { medium: "CASH" }, "must be one of MPESA"],
    ["reference", { reference: undefined }, "is required"],
    ["reference", { reference: "" }, "not empty"],
    ["reference", { reference: 7 }, "must be a string"],
    ["reference", { reference: long }, "at most 100 characters; it has 101"],
    ["description", { description: 7 }, "must be a string"],
    ["callback_url", { callback_url: "http://merchant.example/x" }, "must use HTTPS"],
    ["callback_url", { callback_url: "merchant.example" }, "must begin with https://"],
    ["callback_url", { callback_url: "localhost:3000/x" }, "must begin with https://"],
    ["callback_url", { callback_url: "ftp://merchant.example/" }, "must begin with https://"],
    ["callback_url", { callback_url: "https://" }, "must be a full address"],
    ["callback_url", { callback_url: 7 }, "must be a string"],
    ["redirects", { redirects: "https://shop.example" }, "must be an object"],
    ["redirects.success_url", { redirects: { success_url: "/paid" } }, "must be a full address"],
    ["redirects.success_url", { redirects: { success_url: "javascript:alert(1)" } }, "not javascript:"],
    ["redirects.success_url", { redirects: { success_url: "data:text/html,x" } }, "not data:"],
    [
      "redirects.success",
      { redirects: { success_url: "https://shop.example", success: "https://shop.example" } },
      "is given beside success_url",
    ],
    ["redirects.failedUrl", { redirects: { failedUrl: "/no" } }, "must be a full address"],
    ["merchant_pays_fee", { merchant_pays_fee: "yes" }, "true or false"],
  ])("refuses a wrong %s with 400: %j", async (field, changes, message) => {
    const sandbox = await start();
    const { status, body } = await pay(sandbox, "POST", "/direct", payment(changes));
    expect(status).toBe(400);
    expect(body).toEqual({
      success: false,
      status: "ERROR",
      message: expect.stringContaining(field),
      error_code: "INVALID_REQUEST",
      errors: { [field]: [expect.stringContaining(message)] },
      data: {
        message: expect.stringContaining(field),
        errors: [{ field, message: expect.stringContaining(message) }],
      },
    });
    expect(sandbox.transactions.list()).toEqual([]);
  });

  it("reports all mistakes at once", async () => {
    const { body } = await pay(await start(), "POST", "/direct", {});
    const fields = body.data.errors.map(({ field }) => field);
    expect(fields).toEqual(["amount", "currency", "phone_number", "reference", "medium"]);
  });

  it.each(["{", "[]", '"text"', "null", ""])("refuses a body that is no JSON object: %j", async (text) => {
    const sandbox = await start();
    const headers = { "X-API-Key": sandbox.keys.apiKey, "Content-Type": "application/json" };
    const answer = await call(sandbox, "POST", "/api/v2/payment/direct", text, headers);
    expect(answer.status).toBe(400);
    expect(answer.body.data.message).toContain("must be a JSON object");
  });

  it("refuses another content type", async () => {
    const sandbox = await start();
    const headers = { "X-API-Key": sandbox.keys.apiKey, "Content-Type": "text/plain" };
    const answer = await call(sandbox, "POST", "/api/v2/payment/direct", JSON.stringify(payment()), headers);
    expect(answer.status).toBe(400);
    expect(answer.body.data.message).toContain("application/json");
  });

  it("refuses a reference that was used before, by whatever call", async () => {
    const sandbox = await start();
    const { reference } = payment();
    expect((await pay(sandbox, "POST", "/direct", payment({ reference }))).status).toBe(200);
    for (const [path, body] of [
      ["/direct", payment({ reference })],
      ["/withdrawal", payment({ reference })],
      ["/checkout", checkout({ reference })],
    ] as const) {
      const again = await pay(sandbox, "POST", path, body);
      expect(again.status).toBe(400);
      expect(again.body.data.errors).toEqual([
        { field: "reference", message: expect.stringContaining("unique") },
      ]);
    }
  });

  it("takes plain HTTP to this machine only as long as it is allowed", async () => {
    const local = { callback_url: "http://127.0.0.1:9/x" };
    expect((await pay(await start(), "POST", "/direct", payment(local))).status).toBe(200);
    for (const options of [{ allowHttpLoopback: false }, { strictHttps: true }]) {
      expect((await pay(await start(options), "POST", "/direct", payment(local))).status).toBe(400);
    }
    const redirects = { success_url: "http://127.0.0.1:9/paid" };
    expect((await pay(await start(), "POST", "/direct", payment({ redirects }))).status).toBe(200);
    const strict = await pay(await start({ strictHttps: true }), "POST", "/direct", payment({ redirects }));
    expect(strict.body.data.errors).toEqual([{ field: "redirects.success_url", message: "must use HTTPS" }]);
  });

  it("answers 413 to a body over the limit, and goes on", async () => {
    const sandbox = await start({ limits: { bodyBytes: 1_000 } });
    const large = await pay(sandbox, "POST", "/direct", payment({ description: "x".repeat(2_000) }));
    expect(large.status).toBe(413);
    const body = new Blob([JSON.stringify(payment({ description: "x".repeat(2_000) }))]).stream();
    const headers = { "X-API-Key": sandbox.keys.apiKey, "Content-Type": "application/json" };
    const init = { method: "POST", headers, body, duplex: "half" };
    const chunked = await fetch(`${sandbox.url}/api/v2/payment/direct`, init as RequestInit);
    expect(chunked.status).toBe(413);
    expect((await pay(sandbox, "POST", "/direct", payment())).status).toBe(200);
  });
});

describe("POST /api/v2/payment/withdrawal", () => {
  it("starts a withdrawal, which the look-up shows as one", async () => {
    const sandbox = await start();
    const { status, body } = await pay(sandbox, "POST", "/withdrawal", payment());
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      id: expect.stringMatching(UUID),
      type: "WITHDRAWAL",
      status: "PENDING",
    });
    const shown = await pay(sandbox, "GET", `/transaction/${body.data.id}`);
    expect(shown.body.data).toMatchObject({ type: "WITHDRAWAL", success_url: "", failed_url: "" });
  });

  it("keeps the rules of a direct payment", async () => {
    const { status, body } = await pay(
      await start(),
      "POST",
      "/withdrawal",
      payment({ amount: "1", medium: "X" }),
    );
    expect(status).toBe(400);
    expect(body.data.errors.map(({ field }) => field)).toEqual(["amount", "medium"]);
  });
});

describe("POST /api/v2/payment/checkout", () => {
  it("answers with the transaction id and the address of the hosted page", async () => {
    const sandbox = await start();
    const body = checkout({ description: "Sample" });
    const answer = await pay(sandbox, "POST", "/checkout", body);
    expect(answer.status).toBe(200);
    const { id } = answer.body.data;
    expect(answer.body.status).toBe("SUCCESS");
    expect(answer.body.data).toEqual({
      id: expect.stringMatching(UUID),
      transaction_id: id,
      reference: body.reference,
      type: "DEPOSIT",
      amount: 10.5,
      currency: "ETB",
      status: "PENDING",
      message: expect.any(String),
      medium: "",
      created_at: expect.any(String),
      checkout_url: `${sandbox.url}/checkout/${id}`,
      payment_url: `${sandbox.url}/checkout/${id}`,
    });
    const shown = await pay(sandbox, "GET", `/transaction/${id}`);
    expect(shown.body.data).toMatchObject({
      status: "PENDING",
      medium: "",
      success_url: "https://shop.example/paid",
      failed_url: "https://shop.example/failed",
    });
  });

  it.each([
    ["redirects.success", { redirects: undefined }, "is required"],
    ["redirects.failed", { redirects: { success: "https://a.example" } }, "is required"],
    ["redirects.success", { redirects: { success: "a.example", failed: "https://a.example" } }, "full"],
    ["redirects.failed", { redirects: { success_url: "https://a.example" } }, "is required"],
    ["supported_mediums", { supported_mediums: undefined }, "is required"],
    ["supported_mediums", { supported_mediums: [] }, "not empty"],
    ["supported_mediums", { supported_mediums: "CBE" }, "must be an array"],
    ["supported_mediums[1]", { supported_mediums: ["CBE", "CASH"] }, "must be one of"],
    ["reference", { reference: "x".repeat(101) }, "at most 100"],
    ["callback_url", { callback_url: "http://a.example" }, "must use HTTPS"],
  ])("refuses a wrong %s with 400: %j", async (field, changes, message) => {
    const { status, body } = await pay(await start(), "POST", "/checkout", checkout(changes));
    expect(status).toBe(400);
    expect(body.data.errors).toContainEqual({ field, message: expect.stringContaining(message) });
  });

  it("hands out addresses under publicUrl where one is given", async () => {
    const sandbox = await start({ publicUrl: "https://sandbox.example/" });
    const { body } = await pay(sandbox, "POST", "/checkout", checkout());
    expect(body.data.checkout_url).toBe(`https://sandbox.example/checkout/${body.data.id}`);
  });
});

describe("the redirects of a call", () => {
  const there = "https://shop.example/paid";
  const back = "https://shop.example/no";
  const spellings = [
    ["success_url", "failure_url"],
    ["success", "failed"],
    ["successUrl", "failureUrl"],
    ["success_url", "failed_url"],
    ["successUrl", "failedUrl"],
  ] as const;

  it.each(spellings)(
    "may be called %s and %s, with a warning where the call has other names",
    async (...names) => {
      const [success, failed] = names;
      const redirects = { [success]: there, [failed]: back };
      const sandbox = await start();
      const strict = await start({ strict: true });
      for (const [path, body, own] of [
        ["/direct", payment({ redirects }), ["success_url", "failure_url"]],
        ["/checkout", checkout({ redirects }), ["success", "failed"]],
      ] as const) {
        const others = names.filter((name) => !own.some((one) => one === name));
        const { status, body: answer } = await pay(sandbox, "POST", path, body);
        expect(status).toBe(200);
        const record = sandbox.transactions.get(answer.data.id);
        expect(record?.order).toMatchObject({ successUrl: there, failedUrl: back });
        expect(record?.order.warnings).toEqual(
          others.map((name) => expect.stringMatching(new RegExp(`^redirects\\.${name} is not a member`))),
        );
        const page = await (await fetch(sandbox.url)).text();
        for (const name of others) expect(page).toContain(`redirects.${name} is not a member in this call`);
        const refused = await pay(strict, "POST", path, body);
        expect(refused.status).toBe(others.length > 0 ? 400 : 200);
        const fields = (refused.body.data.errors ?? []).map(({ field }) => field);
        expect(fields).toEqual(expect.arrayContaining(others.map((name) => `redirects.${name}`)));
      }
    },
  );
});

describe("a payment on behalf of a connected merchant", () => {
  it("is his in the order, the look-ups and the callback", async () => {
    const sandbox = await start();
    const merchant = await receiver();
    const headers = { "X-API-Key": sandbox.keys.apiKey, "x-connected-merchant-ID": "cm_7" };
    for (const [path, body] of [
      ["direct", payment({ callback_url: merchant.url })],
      ["withdrawal", payment({ callback_url: merchant.url })],
    ] as const) {
      const { status, body: answer } = await call(sandbox, "POST", `/api/v2/payment/${path}`, body, headers);
      expect(status).toBe(200);
      expect(sandbox.transactions.get(answer.data.id)?.order.onBehalfOf).toBe("cm_7");
      const shown = await pay(sandbox, "GET", `/transaction/ref/${body.reference}`);
      expect(shown.body.data).toMatchObject({ merchant_id: "cm_7" });
      const delivery = await sandbox.deliveries.waitFor({
        reference: String(body.reference),
        state: "delivered",
      });
      expect(JSON.parse(delivery.attempts[0]?.body ?? "")).toMatchObject({ merchantId: "cm_7" });
    }
    expect(await (await fetch(sandbox.url)).text()).toContain("on behalf of");
  });

  it("is the merchant's own without the header", async () => {
    const sandbox = await start();
    const { body } = await pay(sandbox, "POST", "/direct", payment());
    const record = sandbox.transactions.get(body.data.id);
    expect(record?.order.onBehalfOf).toBeNull();
    expect(record?.transaction.merchant_id).toBe(sandbox.keys.merchantId);
  });

  it.each(["", "two words", "x".repeat(101)])("is refused with the id %j", async (id) => {
    const sandbox = await start();
    const headers = { "X-API-Key": sandbox.keys.apiKey, "X-Connected-Merchant-Id": id };
    const answer = await call(sandbox, "POST", "/api/v2/payment/direct", payment(), headers);
    expect(answer.status).toBe(400);
    expect(answer.body.data.errors).toMatchObject([{ field: "X-Connected-Merchant-Id" }]);
    expect(sandbox.transactions.list()).toEqual([]);
  });
});

describe("the look-ups", () => {
  it("answer an unknown id or reference with success and a message", async () => {
    const sandbox = await start();
    for (const path of ["/transaction/ref/nobody", "/transaction/1f0e"]) {
      const answer = await pay(sandbox, "GET", path);
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({
        success: true,
        data: { message: expect.stringContaining("No transaction was found") },
      });
    }
  });

  it.each(["a b", "ä/ö", "100%", "x&y=z", "?", "ref", "<b>"])("find the reference %j", async (reference) => {
    const sandbox = await start();
    await pay(sandbox, "POST", "/direct", payment({ reference }));
    const { body } = await pay(sandbox, "GET", `/transaction/ref/${encodeURIComponent(reference)}`);
    expect(body.data.reference).toBe(reference);
  });

  it.each([
    ["251911234567", "251 911234567"],
    ["251 911234567", "251 911234567"],
    ["12025550123", "1 2025550123"],
    ["447700900123", "44 7700900123"],
    ["251 12345", "251 12345"],
  ])("show the phone number %s as %s", async (phone_number, shown) => {
    const sandbox = await start();
    const { body } = await pay(sandbox, "POST", "/direct", payment({ phone_number }));
    expect((await pay(sandbox, "GET", `/transaction/${body.data.id}`)).body.data.phone_number).toBe(shown);
  });
});

describe("addresses that are none", () => {
  it("answer 404 in the form of the errors", async () => {
    const sandbox = await start();
    for (const [method, path] of [
      ["GET", "/api/v2/payment/direct"],
      ["GET", "/api/v1/x"],
      ["GET", "/nothing"],
    ] as const) {
      const headers = { "X-API-Key": sandbox.keys.apiKey };
      const answer = await call(sandbox, method, path, undefined, headers);
      expect(answer.status).toBe(404);
      const message = expect.stringContaining(path);
      expect(answer.body).toEqual({
        success: false,
        status: "ERROR",
        message,
        error_code: "NOT_FOUND",
        data: { message },
      });
    }
  });
});
