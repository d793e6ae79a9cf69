import { expect, it } from "vitest";
import { Registry } from "../../src/handlers/registry.ts";

it("the attempts of a handler are those of the event's own flow", () => {
  const registry = new Registry();
  const handle = (): void => {};
  registry.add("DEPOSIT", handle, { name: "book", maxAttempts: 3 });
  registry.addOfSource("shop", "DEPOSIT", handle, { name: "book", maxAttempts: 25 });
  registry.addOfSource("bank", "*", handle, { name: "book", maxAttempts: 100 });
  registry.addOfSource("bank", "DEPOSIT", handle, { name: "mail", maxAttempts: 7 });
  expect(registry.maxAttemptsOf("payments", "DEPOSIT", "book")).toBe(3);
  expect(registry.maxAttemptsOf("shop", "DEPOSIT", "book")).toBe(25);
  expect(registry.maxAttemptsOf("bank", "DEPOSIT", "book")).toBe(100);
  expect(registry.maxAttemptsOf("bank", "DEPOSIT", "mail")).toBe(7);
  expect(registry.maxAttemptsOf("payments", "DEPOSIT", "mail")).toBe(0);
});
