/** Bars of processor time, as an image that is readable on a light and on a dark page. */
import type { Estimate } from "./statistics.ts";

export interface Bar {
  readonly label: string;
  /** Ours are of another colour. */
  readonly isOurs: boolean;
  /** Microseconds. */
  readonly cpuUs: Estimate;
  /** Of a server beside it: continues the bar. */
  readonly besideUs?: Estimate | null;
}

/** Bars that are compared, on a scale of their own. */
export interface BarGroup {
  readonly title: string;
  readonly bars: readonly Bar[];
}

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
.beside { opacity: 0.5; }
.whisker { stroke: #24292f; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .whisker { stroke: #e6edf3; }
}`;

export function barChart(title: string, groups: readonly BarGroup[]): string {
  let y = 30;
  const parts: string[] = [];
  for (const group of groups) {
    const perUs = (WIDTH - LABELS - RIGHT) / Math.max(...group.bars.map(lengthOf));
    parts.push(`<text class="title" x="0" y="${y}">${group.title}</text>`);
    y += 10;
    for (const bar of group.bars) {
      parts.push(drawn(bar, y, perUs));
      y += STEP;
    }
    y += GAP - 10;
  }
  const height = y - 10;
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
function highOf({ median, high }: Estimate): number {
  return Number.isFinite(high) ? high : median;
}

/** Up to the end of the last whisker. */
function lengthOf({ cpuUs, besideUs }: Bar): number {
  return besideUs == null ? highOf(cpuUs) : Math.max(highOf(cpuUs), cpuUs.median + highOf(besideUs));
}

function drawn(bar: Bar, y: number, perUs: number): string {
  const { label, isOurs, cpuUs, besideUs } = bar;
  const kind = isOurs ? "ours" : "bar";
  const pieces = [{ kind, fromUs: 0, figure: cpuUs }];
  if (besideUs != null) pieces.push({ kind: `${kind} beside`, fromUs: cpuUs.median, figure: besideUs });
  const at = (us: number): string => (LABELS + us * perUs).toFixed(1);
  const middle = y + BAR / 2;
  const figures = pieces.map(({ figure }) => figure.median.toFixed(0));
  return [
    `<text x="${LABELS - 8}" y="${y + 11}" text-anchor="end">${label}</text>`,
    ...pieces.map(
      ({ kind, fromUs, figure }) =>
        `<rect class="${kind}" x="${at(fromUs)}" y="${y}" width="${(figure.median * perUs).toFixed(1)}" height="${BAR}" rx="2"/>`,
    ),
    ...pieces.map(
      ({ fromUs, figure }) =>
        `<line class="whisker" x1="${at(fromUs + figure.low)}" x2="${at(fromUs + highOf(figure))}" y1="${middle}" y2="${middle}"/>`,
    ),
    `<text x="${(LABELS + lengthOf(bar) * perUs + 6).toFixed(1)}" y="${y + 11}">${figures.join(" + ")} µs</text>`,
  ].join("\n");
}
