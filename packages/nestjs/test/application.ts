/** Applications of NestJS, on both platforms, and deliveries to them. */
import {
  type INestApplication,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
} from "@nestjs/common";
import { type AbstractHttpAdapter, NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { createReceiver, memoryInbox, type Receiver, type ReceiverOptions } from "@payhooks/core";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { onTestFinished } from "vitest";

const KEYS: TestKeys = createTestKeys();
export const SECRET = "whsec_nestjs_0123456789";
export const PAY = "/callbacks/pay";
export const CONNECT = "/webhooks/connect";

export type Adapter = AbstractHttpAdapter;

export const PLATFORMS: readonly [
  express: readonly [name: string, adapter: () => Adapter],
  fastify: readonly [name: string, adapter: () => Adapter],
] = [
  ["Express", (): Adapter => new ExpressAdapter()],
  ["Fastify", (): Adapter => new FastifyAdapter()],
];

const silent = { info() {}, warn() {}, error() {} };

export function newReceiver(options: Partial<ReceiverOptions> = {}): Receiver {
  return createReceiver({
    payments: { publicKey: KEYS.publicKey },
    connect: { secret: SECRET },
    inbox: memoryInbox(),
    logger: silent,
    ...options,
  });
}

export interface Running {
  readonly url: string;
  readonly app: INestApplication;
  post(path: string, delivery: SignedDelivery): Promise<string>;
}

async function created(
  metadata: ModuleMetadata,
  adapter: Adapter,
  options: NestApplicationOptions,
): Promise<INestApplication> {
  class App {}
  Module(metadata)(App);
  return NestFactory.create(App, adapter, { logger: false, abortOnError: false, ...options });
}

/** Creates an application as `main.ts` does, and listens. */
export async function listening(
  metadata: ModuleMetadata,
  adapter: Adapter,
  options: NestApplicationOptions = {},
): Promise<Running> {
  const app = await created(metadata, adapter, options);
  onTestFinished(() => app.close());
  await app.listen(0, "127.0.0.1");
  const url = await app.getUrl();
  return {
    url,
    app,
    async post(path, { headers, rawBody }) {
      const answer = await fetch(url + path, { method: "POST", headers, body: Buffer.from(rawBody) });
      return `${answer.status} ${await answer.text()}`;
    },
  };
}

export const RECEIVED = '200 {"received":true}';

export function payment(fields: Parameters<typeof callbackFields>[0] = {}): SignedDelivery {
  return signPaymentCallback(callbackFields(fields), KEYS.privateKey);
}
