import type { Health } from "../inbox/contract/inbox.ts";
import { oldestDueSeconds, stateCounts } from "./measure.ts";
import { GAUGES } from "./table.ts";
import { writeMetric } from "./text.ts";

/** The counts of an inbox as a text for Prometheus. Unknown counts are left out. */
export function prometheusCounts(
  health: Pick<Health, "waiting" | "retrying" | "running" | "held" | "oldestDueMs">,
): string {
  const states = stateCounts(health).map(({ attributes, count }) => ({ labels: attributes, value: count }));
  const due = oldestDueSeconds(health);
  return [
    states.length === 0 ? "" : writeMetric(GAUGES.events, states),
    due === null ? "" : writeMetric(GAUGES.oldestDue, [{ labels: due.attributes, value: due.seconds }]),
  ].join("");
}
