import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { inject } from "vitest";

/** Each test file gets the same RSA keys in every run of it: the first that it asks for is the first of the pairs. */
const pairs = inject("keyPairs");
// All test files share one process, and this module runs for each of them. Only at first is the function that of Node.
const make = Reflect.get(globalThis, "payhooksMakesKeys") ?? crypto.generateKeyPairSync;
Reflect.set(globalThis, "payhooksMakesKeys", make);
let asked = 0;

crypto.generateKeyPairSync = ((
  type: string,
  options: { modulusLength?: number; privateKeyEncoding?: object },
) => {
  const isUsual =
    type === "rsa" && options.modulusLength === 2048 && options.privateKeyEncoding !== undefined;
  const pair = isUsual ? pairs[asked++] : undefined;
  return pair === undefined ? make(type, options) : { ...pair };
}) as typeof crypto.generateKeyPairSync;
syncBuiltinESMExports();
