import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { isThenable } from "../../src/time/awaitable.ts";

describe("a value that may have to be waited for", () => {
  it("is distinguished from a value that is there, whoever made the promise", () => {
    for (const value of [undefined, null, "ok", 0, { outcome: "new" }]) {
      expect(isThenable(value)).toBe(false);
    }
    const foreign = runInNewContext("Promise.resolve(1)") as Promise<number>;
    expect(foreign).not.toBeInstanceOf(Promise);
    for (const promise of [Promise.resolve(1), foreign]) expect(isThenable(promise)).toBe(true);
  });
});
