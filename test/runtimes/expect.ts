/** vitest's `expect` for a program that runs without vitest, on a runtime that vitest does not run on. */
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

export const expect = Object.assign((value: unknown, message?: string) => chai.expect(value, message), {
  fail: (message: string): never => chai.expect.fail(message) as never,
  ...asymmetric(),
});

/** `expect.objectContaining` and its like, which the plugin adds to chai's own `expect`. */
function asymmetric(): object {
  return Object.fromEntries(
    ["any", "anything", "objectContaining", "arrayContaining", "stringContaining", "stringMatching"].map(
      (name) => [name, (chai.expect as unknown as Readonly<Record<string, unknown>>)[name]],
    ),
  );
}

/** Cases are run one by one by whoever imports them. */
export const describe = (): void => {};
export const it = (): void => {};
