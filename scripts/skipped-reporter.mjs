// Says at the end which tests were skipped, and why: a reader of the summary shall not have to wonder.
// A test says why by `skip("the reason")` of its context.

/** @implements {import("vitest/reporters").Reporter} */
export default class SkippedReporter {
  #isPart = false;

  onInit({ config }) {
    // With a pattern of test names, the user knows that the others are skipped.
    this.#isPart = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules) {
    if (this.#isPart) return;
    const skipped = modules.flatMap((module) => [...module.children.allTests("skipped")]);
    if (skipped.length === 0) return;
    const lines = skipped.map((test) => `  ${test.fullName}: ${test.result().note ?? "it does not say why"}`);
    process.stdout.write(`\nSkipped:\n${lines.join("\n")}\n`);
  }
}
