import { type Html, html } from "@payhooks/pages";
import type { Activity, Minute, MinuteCounts } from "../activity/activity.ts";
import { addressOf, type ConsoleQuery } from "../query.ts";
import { count, moment } from "./text.ts";

const CHART_WIDTH = 960;
const CHART_HEIGHT = 160;

/** How many minutes one bar covers, by the hours of the chart. There are 60 bars or 96. */
const MINUTES_PER_BAR = { 1: 1, 24: 15 } as const;

/** The outcomes of deliveries, from the bottom of a bar to its top. */
const OUTCOMES: readonly {
  readonly key: keyof MinuteCounts;
  readonly name: string;
  readonly tone: string;
}[] = [
  { key: "finished", name: "finished", tone: "good" },
  { key: "retried", name: "to be tried again", tone: "wait" },
  { key: "held", name: "held", tone: "bad" },
  { key: "refused", name: "refused", tone: "off" },
];

/** The chart of deliveries and outcomes over time, as this process has seen them. */
export function activityCard(activity: Activity, query: ConsoleQuery, now: number): Html {
  const { hours } = query;
  const bars = barsOf(activity.minutes(now, hours * 60), MINUTES_PER_BAR[hours]);
  const totals = sumOf(bars);
  const range = (value: 1 | 24, label: string) =>
    html`<a href="${addressOf(query, { hours: value })}" ${value === hours && html`aria-current="true"`}>${label}</a>`;
  return html`<header><h2 id="activity-title">Deliveries and outcomes</h2>
  <nav class="ranges end" aria-label="Time that the chart shows">${range(1, "1 hour")}${range(24, "24 hours")}</nav></header>
<div class="inner">
  ${picture(bars, totals, hours)}
  <div class="axis" aria-hidden="true"><span>${hours === 1 ? "60 minutes ago" : "24 hours ago"}</span><span>${count(peakOf(bars))} at most in ${hours === 1 ? "a minute" : "15 minutes"}</span><span>now</span></div>
  <ul class="legend"><li><span class="key line-key"></span>deliveries <b>${count(totals.deliveries)}</b></li>${OUTCOMES.map(
    ({ key, name, tone }) =>
      html`<li><span class="key ${tone}"></span>${name} <b>${count(totals[key])}</b></li>`,
  )}</ul>
  <p class="hint">Seen by this process alone, since ${moment(activity.since)}. Other processes count for themselves.</p>
  ${table(bars)}
</div>`;
}

function picture(bars: readonly Minute[], totals: MinuteCounts, hours: number): Html {
  const highest = Math.max(4, peakOf(bars));
  const step = CHART_WIDTH / bars.length;
  const high = (value: number): number => roundToTenth((value / highest) * (CHART_HEIGHT - 8));
  const label = `In the last ${hours === 1 ? "hour" : "24 hours"}: ${count(totals.deliveries)} deliveries, ${OUTCOMES.map(({ key, name }) => `${count(totals[key])} ${name}`).join(", ")}.`;
  return html`<svg class="chart" viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">
    ${[0.25, 0.5, 0.75].map((part) => html`<line class="grid" x1="0" x2="${CHART_WIDTH}" y1="${CHART_HEIGHT * part}" y2="${CHART_HEIGHT * part}"/>`)}
    ${bars.map((bar, i) => {
      let y = CHART_HEIGHT;
      return html`<g>${OUTCOMES.flatMap(({ key, tone }) => {
        const height = high(bar[key]);
        if (height === 0) return [];
        y -= height;
        return html`<rect class="${tone}" x="${roundToTenth(i * step + step * 0.12)}" y="${roundToTenth(y)}" width="${roundToTenth(step * 0.76)}" height="${height}"/>`;
      })}</g>`;
    })}
    ${bars.flatMap((bar, i) => (bar.deliveries === 0 ? [] : [tick(i * step, (i + 1) * step, CHART_HEIGHT - high(bar.deliveries))]))}
  </svg>`;
}

function tick(from: number, to: number, y: number): Html {
  return html`<line class="deliveries" x1="${roundToTenth(from)}" x2="${roundToTenth(to)}" y1="${roundToTenth(y)}" y2="${roundToTenth(y)}"/>`;
}

/** The numbers of the chart, also for people who cannot see it. */
function table(bars: readonly Minute[]): Html {
  const busy = bars.filter((bar) => bar.deliveries + outcomesOf(bar) > 0).toReversed();
  if (busy.length === 0) return html`<p class="hint">This process has seen nothing in this time.</p>`;
  return html`<details class="numbers" id="activity-numbers"><summary>The numbers</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="The numbers of the chart"><table>
      <thead><tr><th scope="col">from</th><th scope="col">deliveries</th>${OUTCOMES.map(({ name }) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${busy.map(
        (bar) =>
          html`<tr><th scope="row">${moment(bar.at)}</th><td>${count(bar.deliveries)}</td>${OUTCOMES.map(({ key }) => html`<td>${count(bar[key])}</td>`)}</tr>`,
      )}</tbody>
    </table></div></details>`;
}

function barsOf(minutes: readonly Minute[], perBar: number): readonly Minute[] {
  const bars: Minute[] = [];
  for (let i = 0; i < minutes.length; i += perBar) {
    const group = minutes.slice(i, i + perBar);
    bars.push({ at: group[0]?.at ?? 0, ...sumOf(group) });
  }
  return bars;
}

function sumOf(minutes: readonly MinuteCounts[]): MinuteCounts {
  const sum = (key: keyof MinuteCounts): number => minutes.reduce((total, minute) => total + minute[key], 0);
  return {
    deliveries: sum("deliveries"),
    finished: sum("finished"),
    retried: sum("retried"),
    held: sum("held"),
    refused: sum("refused"),
  };
}

/** The highest number that any bar shows. */
function peakOf(bars: readonly MinuteCounts[]): number {
  return Math.max(0, ...bars.map((bar) => Math.max(bar.deliveries, outcomesOf(bar))));
}

function outcomesOf(bar: MinuteCounts): number {
  return OUTCOMES.reduce((total, { key }) => total + bar[key], 0);
}

function roundToTenth(value: number): number {
  return Math.round(value * 10) / 10;
}
