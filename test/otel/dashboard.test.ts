/** The dashboard and the rules of examples/prometheus name metrics and labels that exist, and no metric is forgotten. */
import { prometheusMetrics } from "@payhooks/core/metrics";
import { expect, it } from "vitest";
import { COUNTERS, GAUGES, HISTOGRAMS } from "../../packages/core/src/metrics/table.ts";
import { prometheusName } from "../../packages/core/src/metrics/text.ts";
import { readDocument } from "../docs/markdown.ts";
import { eventful } from "./eventful.ts";
import { dashboardChoices, dashboardExpressions, ruleExpressions } from "./recipe.ts";

const OWN = /\b(?:messaging|payhooks)_\w+/g;

/** By each series that a scraper finds: its labels. */
async function seriesThereAre(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const metrics = prometheusMetrics();
  const receiver = eventful(metrics);
  await receiver.round();
  const series = new Map<string, Set<string>>();
  for (const line of (await metrics.text()).split("\n")) {
    const [, name, labels = ""] = /^(\w+)\{(.*)\} /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = series.get(name) ?? new Set();
    series.set(name, known);
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
  }
  await receiver.close();
  return series;
}

/** The series that an expression names, and the labels that it selects, joins or groups by. */
function namedIn(expression: string): {
  readonly series: readonly string[];
  readonly labels: readonly string[];
} {
  const selectors = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, inner = ""]) =>
    [...inner.matchAll(/(\w+)\s*=/g)].map(([, label = ""]) => label),
  );
  const groups = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/, */));
  // label_values(series, label) is Grafana's own, for the choices of a variable.
  const [, chosen] = /^label_values\(.*, (\w+)\)$/.exec(expression) ?? [];
  const bare = expression
    .replaceAll(/\{[^}]*\}/g, "")
    .replaceAll(/\b(?:by|on) \([^)]*\)/g, "")
    .replace(/, \w+\)$/, "");
  return {
    series: bare.match(OWN) ?? [],
    labels: [...selectors, ...groups, ...(chosen === undefined ? [] : [chosen])],
  };
}

const expressions = [...dashboardExpressions(), ...ruleExpressions(), ...dashboardChoices()];

it("every expression names series that a scraper finds, and labels that they have", async () => {
  const series = await seriesThereAre();
  expect(expressions.length).toBeGreaterThan(15);
  for (const expression of expressions) {
    const named = namedIn(expression);
    expect(named.series, expression).not.toEqual([]);
    const labels = new Set(["instance", "job"]);
    for (const name of named.series) {
      expect([...series.keys()], expression).toContain(name);
      for (const label of series.get(name) ?? []) labels.add(label);
    }
    for (const label of named.labels) expect([...labels], expression).toContain(label);
  }
  // The check itself: a name of before.
  expect([...series.keys()]).not.toContain("messaging_process_duration_seconds_bucket");
});

it("every metric is on the dashboard, and in the table of the page", () => {
  const all = [COUNTERS, HISTOGRAMS, GAUGES].flatMap((table) => Object.values(table));
  const shown = dashboardExpressions().join("\n");
  for (const metric of all) expect(shown).toContain(prometheusName(metric));
  const table = readDocument("docs/operating/observability.md")
    .prose.filter((line) => /^\| `(?:messaging|payhooks)\./.test(line))
    .map((line) => line.split("`")[1]);
  expect(table.sort()).toEqual(all.map(({ name }) => name).sort());
});
