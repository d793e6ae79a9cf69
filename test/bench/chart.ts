/** Bars of processor time per request, as an image that is readable on a light and on a dark page. */

import type { Mode } from "./protocol.ts";
import { groupTitle } from "./report.ts";
import type { GroupFigures, ModeFigures, Results } from "./results.ts";
import { MODES } from "./table.ts";

const WIDTH = 880;
const LABELS = 260;
const BAR = 14;
const STEP = 20;
const GAP = 40;
const RIGHT = 130;

const STYLE = `
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.bar { fill: #8c959f; }
.ours { fill: #2f81f7; }
.whisker { stroke: #24292f; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .whisker { stroke: #e6edf3; }
}`;

const BY_OTHERS: ReadonlySet<Mode> = new Set(["bare", "inline", "pem", "least"]);

export function chart({ node, groups }: Pick<Results, "node" | "groups">): string {
  let y = 30;
  const parts: string[] = [];
  for (const group of groups) {
    // A scale for each: what is compared is in one group, and some frameworks take ten times as long as others.
    const perUs = (WIDTH - LABELS - RIGHT) / Math.max(...group.modes.map(({ cpuUs }) => highOf(cpuUs)));
    parts.push(`<text class="title" x="0" y="${y}">${groupTitle(group)}</text>`);
    y += 10;
    for (const figures of group.modes) {
      parts.push(bar(figures, y, perUs));
      y += STEP;
    }
    y += GAP - 10;
  }
  const height = y - 10;
  const title = `Processor time per request on Node ${node}, microseconds, each group on its own scale; whiskers: 95 % interval`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${title}</title>
<style>${STYLE}
</style>
<text x="0" y="12">${title}</text>
<g transform="translate(0 14)">
${parts.join("\n")}
</g>
</svg>
`;
}

/** Without an interval, the median. */
function highOf({ median, high }: ModeFigures["cpuUs"]): number {
  return Number.isFinite(high) ? high : median;
}

function bar({ mode, cpuUs }: GroupFigures["modes"][number], y: number, perUs: number): string {
  const end = LABELS + cpuUs.median * perUs;
  const [low, high] = [LABELS + cpuUs.low * perUs, LABELS + highOf(cpuUs) * perUs];
  const middle = y + BAR / 2;
  return [
    `<text x="${LABELS - 8}" y="${y + 11}" text-anchor="end">${MODES[mode]}</text>`,
    `<rect class="${BY_OTHERS.has(mode) ? "bar" : "ours"}" x="${LABELS}" y="${y}" width="${(end - LABELS).toFixed(1)}" height="${BAR}" rx="2"/>`,
    `<line class="whisker" x1="${low.toFixed(1)}" x2="${high.toFixed(1)}" y1="${middle}" y2="${middle}"/>`,
    `<text x="${(high + 6).toFixed(1)}" y="${y + 11}">${cpuUs.median.toFixed(0)} µs</text>`,
  ].join("\n");
}
