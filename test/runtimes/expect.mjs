/** The part of vitest that cases use, for a program without it, on a runtime on which vitest does not run. */
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

export const expect = chai.expect;

/** Cases are run one by one by whoever imports them. */
export const describe = () => {};
export const it = () => {};
