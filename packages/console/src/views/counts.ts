import type { EventCounts, HeldReason } from "@payhooks/core";
import { type Html, html } from "@payhooks/pages";
import { addressOf, type ConsoleQuery, type EventState, isReason } from "../query.ts";
import { count, duration } from "./text.ts";

const TILES: readonly {
  readonly state: Exclude<EventState, "finished">;
  readonly name: string;
  readonly does: string;
}[] = [
  { state: "held", name: "Held", does: "wait for a person" },
  { state: "retrying", name: "Retrying", does: "wait for another attempt" },
  { state: "waiting", name: "Waiting", does: "wait for their first run" },
  { state: "running", name: "Running", does: "run now" },
];

/** How many events are in each state. Each number links to the list of these events. Without counts, dashes say so. */
export function countTiles(counts: EventCounts | null, query: ConsoleQuery): Html {
  const oldestDueMs = counts?.oldestDueMs ?? null;
  return html`<ul>${TILES.map(({ state, name, does }) => {
    const isShown = query.eventId === null && query.search === null && query.state === state;
    const address = addressOf(query, { ...WHOLE_LIST_QUERY, state });
    return html`<li><a class="tile ${state} ${!counts?.[state] && "none"}" id="tile-${state}" href="${address}" ${isShown && html`aria-current="page"`}><span class="number">${counts === null ? UNKNOWN_COUNT : count(counts[state])}</span><span class="what"><b>${name}</b> <span class="does">${does}</span></span></a></li>`;
  })}<li><div class="tile ${oldestDueMs === null && "none"}"><span class="number">${counts === null ? UNKNOWN_COUNT : oldestDueMs === null ? NOTHING_DUE_COUNT : duration(oldestDueMs)}</span><span class="what"><b>Oldest due</b> <span class="does">how far we are behind</span></span></div></li></ul>`;
}

/** How many events are held for each reason. Each number links to the list of these events. */
export function reasonLinks(counts: EventCounts | null, query: ConsoleQuery): Html {
  if (counts === null) return html``;
  const reasons = Object.entries(counts.heldBy).filter(
    (entry): entry is [HeldReason, number] => isReason(entry[0]) && entry[1] > 0,
  );
  if (query.state !== "held" || reasons.length === 0) return html``;
  const link = (reason: HeldReason | null, label: string, heldCount: number) =>
    html`<li><a href="${addressOf(query, { ...WHOLE_LIST_QUERY, reason })}" ${query.reason === reason && html`aria-current="true"`}>${label} <span class="count">${count(heldCount)}</span></a></li>`;
  return html`<ul class="chips" aria-label="Held by reason">${link(null, "all", counts.held)}${reasons.map(([reason, held]) => link(reason, reason, held))}</ul>`;
}

const UNKNOWN_COUNT = html`<span aria-hidden="true">?</span><span class="sr">unknown</span>`;
const NOTHING_DUE_COUNT = html`<span aria-hidden="true">–</span><span class="sr">nothing</span>`;

const WHOLE_LIST_QUERY = { eventId: null, search: null, cursor: null, reason: null } as const;
