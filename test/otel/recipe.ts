import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RECIPE } from "./prometheus-server.ts";

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] };
}

/** The expressions of the dashboard's panels, as Grafana sends them. */
export function dashboardExpressions(): readonly string[] {
  const { panels } = JSON.parse(readFileSync(join(RECIPE, "grafana-dashboard.json"), "utf8")) as Dashboard;
  return panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m").replaceAll("$flow", ".*")),
  );
}

/** The queries of the dashboard for the choices of its variables. */
export function dashboardChoices(): readonly string[] {
  const { templating } = JSON.parse(
    readFileSync(join(RECIPE, "grafana-dashboard.json"), "utf8"),
  ) as Dashboard;
  return templating.list.flatMap(({ query }) => (typeof query === "string" ? [] : [query.query]));
}

/** The expressions of the rules, each on one line. */
export function ruleExpressions(): readonly string[] {
  const rules = readFileSync(join(RECIPE, "alerts.yml"), "utf8");
  return [...rules.matchAll(/expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):/g)].map(([, expression = ""]) =>
    expression.replaceAll(/\s+/g, " ").trim(),
  );
}
