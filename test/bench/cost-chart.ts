/** The chart of one version of Node: processor time per request, a group of bars for each framework and signature. */
import { barChart } from "./bar-chart.ts";
import type { Mode } from "./protocol.ts";
import { groupTitle } from "./report.ts";
import type { Results } from "./results.ts";
import { MODES } from "./table.ts";

const BY_OTHERS: ReadonlySet<Mode> = new Set(["bare", "inline", "pem", "least"]);

export function costChart({ node, groups }: Pick<Results, "node" | "groups">): string {
  const title = `Processor time per request on Node ${node}, microseconds, each group on its own scale; whiskers: 95 % interval`;
  return barChart(
    title,
    groups.map((group) => ({
      title: groupTitle(group),
      bars: group.modes.map(({ mode, cpuUs }) => ({
        label: MODES[mode],
        isOurs: !BY_OTHERS.has(mode),
        cpuUs,
      })),
    })),
  );
}
