import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { PaymentEvent, Receiver } from "@payhooks/core";
import {
  anyCallbackFields,
  asDelivery,
  type CallbackFields,
  createTestKeys,
  resplitPair,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { documents } from "../docs/markdown.ts";
import { root } from "../package/workspace.ts";

const { publicKey, privateKey } = createTestKeys();

/** Every program of the documentation that has a `confirm`. */
const programs = documents().flatMap(({ path, blocks }) =>
  blocks
    .filter(({ language, text }) => language === "ts" && /\bconfirm(:|\()/.test(text))
    .map(({ line, text }) => ({ where: `${path}:${line}`, text })),
);

/** What the service says of its transactions, by id. */
const transactions = new Map<string, CallbackFields>();
const service = createServer((request, response) => {
  const fields = transactions.get(decodeURIComponent(request.url?.split("/").at(-1) ?? ""));
  const data =
    fields === undefined
      ? { message: "no transaction found" }
      : {
          ...{
            id: fields.payTxnId,
            merchant_id: fields.merchantId,
            reference: fields.referenceId,
            type: fields.event,
          },
          ...{
            medium: "TELEBIRR",
            message: fields.message,
            status: fields.status,
            base_amount: Number(fields.amount),
          },
          ...{ phone_number: "251 911000000", details: { RawMessage: null, Valid: true } },
          ...{ callback_url: fields.callbackUrl, success_url: "", failed_url: "", webhook_received: false },
          ...{ created_at: fields.timestamp, updated_at: fields.timestamp },
        };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ success: true, data }));
});
const folder = mkdtempSync(join(root, "test", "security", ".confirm-"));
beforeAll(() => new Promise<void>((resolve) => void service.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
  service.closeAllConnections();
  service.close();
});

/** The receiver that a program exports, with handlers that write down what they were given. */
async function receiverOf(text: string, index: number): Promise<{ receiver: Receiver; ran: PaymentEvent[] }> {
  vi.stubEnv("PAY_BASE_URL", `http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  vi.stubEnv("PAY_API_PUBLIC_KEY", "pk_test");
  vi.stubEnv("PAY_API_SECRET_KEY", "sk_test");
  vi.stubEnv("PAY_PUBLIC_KEY", publicKey);
  vi.stubEnv("PAYHOOKS_FILE", join(folder, `events-${index}-${Date.now()}.db`));
  const file = join(folder, `program-${index}-${Date.now()}.ts`);
  writeFileSync(file, text);
  const exported = (await import(/* @vite-ignore */ file)) as Record<string, unknown>;
  const receiver = Object.values(exported).find(
    (value) => (value as Receiver).payments !== undefined,
  ) as Receiver;
  const ran: PaymentEvent[] = [];
  const write = (event: PaymentEvent): void => void ran.push(event);
  receiver.onDeposit({ SUCCESS: write, FAILED: write, PENDING: write }, { name: "written-down" });
  await receiver.start();
  return { receiver, ran };
}

const deliver = (receiver: Receiver, { rawBody }: SignedDelivery) =>
  receiver.payments.receive({
    method: "POST",
    url: "/",
    headers: { get: (name) => (name === "content-type" ? "application/json" : null) },
    rawBody,
  });

/** The second forgery of docs/concepts/security.md: another amount under the same signature. */
function otherAmount(): { readonly genuine: SignedDelivery; readonly forged: SignedDelivery } {
  const start = "https://shop.example/cb?x=";
  const fields = anyCallbackFields({ accountName: `Abebe&amount=99999.000000&callbackUrl=${start}` });
  const genuine = signPaymentCallback(fields, privateKey);
  const { signature } = JSON.parse(Buffer.from(genuine.rawBody).toString("utf8")) as { signature: string };
  const forged = {
    ...fields,
    accountName: "Abebe",
    amount: "99999.000000",
    callbackUrl: `${start}&amount=${fields.amount}&callbackUrl=${fields.callbackUrl}`,
    signature,
  };
  return { genuine, forged: asDelivery(forged) };
}

const FORGERIES = [
  ["FAILED made SUCCESS", () => resplitPair("VICTIM-7", privateKey)],
  ["10.50 made 99999.00", otherAmount],
] as const;

describe.each(programs)("confirm as documented in $where", ({ text }) => {
  it.each(FORGERIES)("runs nothing forged, and what was signed: %s", async (_, make) => {
    for (const order of ["genuine first", "forged first"]) {
      const { genuine, forged } = make();
      const { signature: __, ...truth } = JSON.parse(Buffer.from(genuine.rawBody).toString("utf8")) as Record<
        string,
        string
      >;
      transactions.set(truth.payTxnId ?? "", truth);
      const { receiver, ran } = await receiverOf(
        text,
        programs.findIndex((one) => one.text === text),
      );
      for (const sent of order === "genuine first" ? [genuine, forged] : [forged, genuine]) {
        expect((await deliver(receiver, sent)).status).toBe(200);
      }
      await vi.waitFor(() => expect(ran).toHaveLength(1), { timeout: 30_000 });
      const { payTxnId, referenceId, status, amount } = truth;
      expect(ran).toMatchObject([{ payTxnId, referenceId, status, amount }]);
      await receiver.close();
      expect(ran).toHaveLength(1);
    }
  });
});

it("every documented confirm was tried", () => {
  expect(programs.length).toBeGreaterThanOrEqual(2);
});
