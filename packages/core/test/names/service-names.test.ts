import { PayhooksError, parseServiceNames, type ServiceNamesOptions, serviceNames } from "@payhooks/core";
import { describe, expect, it } from "vitest";

/** The message of the error that wrong names are refused with. */
function refusalOf(options: unknown): string {
  try {
    serviceNames(options as ServiceNamesOptions);
  } catch (error) {
    if (!(error instanceof PayhooksError)) throw error;
    expect(error.code).toBe("ERR_NAMES_INVALID");
    return error.message;
  }
  throw new Error("the names were taken");
}
const warningsOf = (options: ServiceNamesOptions): string =>
  serviceNames(options)
    .warnings.map(({ what }) => what)
    .join("\n");

describe("the names of a deployment", () => {
  it("are the specification's names, where nothing else is said", () => {
    const { callback, connect, api, warnings } = serviceNames();
    expect(callback.fields.payTxnId).toEqual({ name: "payTxnId", sent: "always" });
    expect(callback.fields.callbackUrl).toEqual({ name: "callbackUrl", sent: "always" });
    expect(callback.fields.message).toEqual({ name: "message", sent: "sometimes" });
    expect({ ...callback.extra }).toEqual({});
    expect(callback.statuses).toEqual({ PENDING: [], SUCCESS: [], FAILED: [] });
    expect(connect).toEqual({ signatureHeader: "X-Connect-Signature", pathSegment: "connect" });
    expect(api.medium).toBe("PAY");
    expect(warnings).toEqual([]);
  });

  it("are complete, frozen, and the same if they are made again", () => {
    const names = serviceNames({
      callback: {
        fields: {
          payTxnId: "acmeTxnId",
          callbackUrl: { sent: "absent" },
          merchantId: { name: "merchant_id", sent: "always" },
          providerTxId: { sent: "always" },
        },
        extra: { currency: "always", medium: "sometimes" },
        statuses: { FAILED: ["CANCELLED"] },
      },
      connect: { signatureHeader: "X-AcmeConnect-Signature", pathSegment: "acmeconnect" },
      api: { medium: "ACME", transactionIdFields: ["acme_transaction_id", "id"] },
    });
    expect(names.callback.fields.payTxnId).toEqual({ name: "acmeTxnId", sent: "always" });
    expect(names.callback.fields.callbackUrl).toEqual({ name: "callbackUrl", sent: "absent" });
    expect({ ...names.callback.extra }).toEqual({ currency: "always", medium: "sometimes" });
    expect(names.callback.statuses.FAILED).toEqual(["CANCELLED"]);
    expect(serviceNames(names)).toEqual(names);
    expect(Object.isFrozen(names.callback.fields.payTxnId)).toBe(true);
    expect(parseServiceNames(JSON.stringify(names))).toEqual(names);
  });

  it("are refused with everything that is wrong", () => {
    const message = refusalOf({
      callback: {
        fields: {
          amount: { sent: "sometimes" },
          event: "a&b",
          status: "signature",
          payTxnId: "txn",
          referenceId: "txn",
          timestamp: { sent: "daily" },
          currency: "curr",
          userId: { sent: "absent" },
        },
        extra: { é: "always", fee: "often", userId: "always", message: "always" },
        statuses: { FAILED: ["cancelled", "SUCCESS"], PENDING: ["OPEN", "OPEN"] },
        words: {},
      },
      connect: { signatureHeader: "Content-Type", pathSegment: "../x" },
      api: { medium: "A B", transactionIdFields: [] },
    });
    for (const part of [
      'callback has no member "words"',
      'callback.fields has no member "currency"',
      'callback.fields.amount.sent is "sometimes"',
      'callback.fields.event has the name "a&b"',
      'callback.fields.status has the name "signature"',
      'callback.fields.timestamp.sent is "daily"',
      "payTxnId and referenceId have one name",
      'callback.extra has the name "é"',
      'callback.extra.fee is "often"',
      "callback.extra has userId, which is the specification's name of another field",
      "message and the extra field message have one name",
      'callback.statuses.FAILED has "cancelled"',
      "callback.statuses.FAILED has SUCCESS, which is a word for SUCCESS already",
      "callback.statuses.PENDING has OPEN, which is a word for PENDING already",
      "connect.signatureHeader is Content-Type",
      'connect.pathSegment is "../x"',
      'api.medium is "A B"',
      "api.transactionIdFields is empty",
    ]) {
      expect(message).toContain(part);
    }
  });

  it.each([
    ["an extra field", { extra: { region: "sometimes" } }],
    ["an optional field", { fields: { message: "remark", status: "state" } }],
    ["one that follows another such field", { extra: { region: "sometimes", remark: "sometimes" } }],
  ] as const)("are refused if the reference can be followed by %s that is sent sometimes", (_, callback) => {
    const message = refusalOf({ callback });
    expect(message).toContain("follows referenceId in the signed string");
    expect(message).toContain('say "always" for it');
  });

  it("warn of a free text that a field sent sometimes may follow", () => {
    const callback = { fields: { payTxnId: "acmeTxnId" } };
    expect(warningsOf({ callback })).toContain("no providerTxId");
    expect(warningsOf({ callback: { extra: { currency: "sometimes" } } })).toContain("no currency");
    expect(
      warningsOf({ callback: { fields: { ...callback.fields, providerTxId: { sent: "always" } } } }),
    ).toBe("");
  });

  it("warn of names whose order depends on capital letters", () => {
    expect(warningsOf({ callback: { fields: { payTxnId: "ZTxnId" } } })).toContain("capital letters");
  });

  it.each(["", "{", "[]", "null", '"names"', '{"__proto__":{}}'])(
    "are refused from a file with %s",
    (json) => {
      expect(() => parseServiceNames(json)).toThrow(expect.objectContaining({ code: "ERR_NAMES_INVALID" }));
    },
  );
});
