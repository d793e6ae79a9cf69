import { inspect } from "node:util";
import { createTestKeys, type TestKeys } from "@payhooks/core/testing";
import { readingsOf } from "./spellings.ts";

export const keys: TestKeys = createTestKeys();

/** Texts that nothing may say, by what they are. */
export const CANARY: Readonly<
  Record<"webhookSecret" | "redisPassword" | "clientSecret" | "apiKey" | "personal" | "privateKey", string>
> = {
  webhookSecret: "CANARY/webhook+secret-0123456789",
  redisPassword: "CANARY-redis-password",
  clientSecret: "CANARY/client+secret",
  apiKey: "CANARY-api-key",
  personal: "Abebe CANARY 251911000000",
  /** A line from the middle of the private key. */
  privateKey: keys.privateKey.split("\n")[5] ?? "",
};

/** Every way in which an object comes to be text, by a logger or by hand. */
export function textsOf(value: unknown): string[] {
  const error = value instanceof Error ? [value.stack ?? "", value.message, textsOf(value.cause).join()] : [];
  const shown = inspect(value, { depth: 30, showHidden: true, getters: true, maxStringLength: null });
  return [shown, ...[asJson, asStructured, String].map((write) => written(value, write)), ...error];
}

/** Empty for a cycle, or an object without a prototype: it cannot come to be text in this way. */
function written(value: unknown, write: (value: unknown) => string | undefined): string {
  try {
    return write(value) ?? "";
  } catch {
    return "";
  }
}

const asJson = (value: unknown): string | undefined => JSON.stringify(value);

/** As structured loggers write errors: their own properties, and what every error has. */
function asStructured(value: unknown): string | undefined {
  return JSON.stringify(value, (_, one: unknown) => {
    if (!(one instanceof Error)) return one;
    const { message, stack, cause } = one;
    return { type: one.constructor.name, message, stack, cause, own: { ...one } };
  });
}

/** The canaries that the values show, in any spelling. */
export function canariesIn(values: readonly unknown[]): string[] {
  const texts = new Set(values.flatMap(textsOf).flatMap(readingsOf));
  return Object.entries(CANARY)
    .filter(([, canary]) => [...texts].some((text) => text.includes(canary)))
    .map(([name]) => name);
}

/** The value that an action throws, now or later. */
export async function thrownBy(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
