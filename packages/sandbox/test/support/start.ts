import { generateKeyPairSync } from "node:crypto";
import { createSandbox, type Sandbox, type SandboxOptions } from "../../src/index.ts";
import { startReceiver, type TestReceiver } from "./receiver.ts";

/** One RSA pair for all tests of a file: making one takes longer than most of them. */
export const privateKey: string = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
}).privateKey;

const open: { close(): Promise<void> }[] = [];

/** Closes what the test has started. */
export async function closeAll(): Promise<void> {
  for (const one of open.splice(0).reverse()) await one.close();
}

/** Does something when the test is over and its sandboxes are closed. */
export function atEnd(close: () => void): void {
  open.unshift({ close: async () => close() });
}

/** A sandbox that ends with the test. */
export async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await createSandbox({
    delayMs: 0,
    ...options,
    merchant: { privateKey, ...options.merchant },
  });
  open.push(sandbox);
  return sandbox;
}

/** A receiver that ends with the test. */
export async function receiver(): Promise<TestReceiver> {
  const started = await startReceiver();
  open.push(started);
  return started;
}

/** The envelope of every JSON answer; which of the members of `data` are there depends on the call. */
export interface AnswerBody {
  readonly success: boolean;
  readonly status?: string;
  readonly message?: string;
  readonly data: {
    readonly id: string;
    readonly reference: string;
    readonly phone_number: string;
    readonly checkout_url: string;
    readonly message: string;
    readonly errors: readonly { readonly field: string; readonly message: string }[];
  };
}

/** An answer of the sandbox. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AnswerBody;
  /** The body as it came. */
  readonly text: string;
}

/** Calls the sandbox with JSON. */
export async function call(
  sandbox: Sandbox,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(sandbox.url + path, {
    method,
    headers: {
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json");
  const parsed: AnswerBody = isJson ? JSON.parse(text) : { success: response.ok, data: text };
  return { status: response.status, headers: response.headers, body: parsed, text };
}

/** Calls a payment endpoint with the merchant's key. */
export function pay(sandbox: Sandbox, method: string, path: string, body?: unknown): Promise<Answer> {
  return call(sandbox, method, `/api/v2/payment${path}`, body, { "X-API-Key": sandbox.keys.apiKey });
}

export const SETTINGS_PATH = "/api/v2/connect/connected-accounts/webhook-settings";

/** Calls the settings endpoint with the merchant's key. */
export function settings(sandbox: Sandbox, method: string, body?: unknown): Promise<Answer> {
  return call(sandbox, method, SETTINGS_PATH, body, { "X-API-Key": sandbox.keys.connectApiKey });
}

let orders = 0;

/** The body of a direct payment that is right in every way. */
export function payment(changes: Record<string, unknown> = {}): Record<string, unknown> {
  orders += 1;
  return {
    amount: "10.50",
    currency: "ETB",
    phone_number: "251911234567",
    medium: "TELEBIRR",
    reference: `order-${orders}`,
    ...changes,
  };
}

/** The body of a checkout that is right in every way. */
export function checkout(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const { medium: _, ...body } = payment();
  return {
    ...body,
    redirects: { success: "https://shop.example/paid", failed: "https://shop.example/failed" },
    supported_mediums: ["MPESA", "TELEBIRR", "CBE"],
    ...changes,
  };
}
