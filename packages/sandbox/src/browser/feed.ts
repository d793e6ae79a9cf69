import { elementsOf, requireElement, setLive, showToast } from "@payhooks/pages/browser";
import type { Fragment } from "../pages/fragment.ts";
import { keepOpen } from "./detail.ts";
import { isField } from "./forms.ts";

const FOCUSABLE_SELECTOR = "summary, button, input, select, a, pre";

/** Puts a part of the page in its place. */
function show({ id, list, html }: Fragment): void {
  if (html === undefined) {
    location.reload();
    return;
  }
  const old = document.getElementById(id);
  const next = elementsOf(html).firstElementChild;
  if (!next) old?.remove();
  else if (old) replace(old, next);
  else if (list) prepend(list, next);
}

function replace(old: Element, next: Element): void {
  keep(old, next);
  const { activeElement } = document;
  const focused = activeElement ? [...old.querySelectorAll(FOCUSABLE_SELECTOR)].indexOf(activeElement) : -1;
  old.replaceWith(next);
  if (focused >= 0)
    next.querySelectorAll<HTMLElement>(FOCUSABLE_SELECTOR)[focused]?.focus({ preventScroll: true });
}

function prepend(list: string, next: Element): void {
  const rows = document.querySelector<HTMLElement>(`[data-list="${list}"]`);
  if (!rows) return;
  next.classList.add("fresh");
  rows.prepend(next);
  const all = rows.querySelectorAll(".row");
  if (all.length > Number(rows.dataset.limit)) all[all.length - 1]?.remove();
}

/** Keeps opened parts and typed texts when the server sends the same part again. */
function keep(old: Element, next: Element): void {
  keepOpen(old, next);
  const forms = next.querySelectorAll("form");
  for (const [index, form] of old.querySelectorAll("form").entries()) {
    const twin = forms[index];
    if (twin) keepForm(form, twin);
  }
}

function keepForm(old: HTMLFormElement, next: HTMLFormElement): void {
  if (old.dataset.post || old.contains(document.activeElement)) {
    for (const field of old.elements) {
      const twin = isField(field) && field.name !== "" ? next.elements.namedItem(field.name) : null;
      if (isField(field) && isField(twin)) twin.value = field.value;
    }
  }
  const explanation = old.querySelector("[data-explanation]");
  const place = next.querySelector("[data-explanation]");
  if (explanation && place) place.textContent = explanation.textContent;
}

/** The form that filters both lists. */
export const filter: HTMLFormElement | null = document.querySelector("form.filter");
let filterTimer: number | undefined;

filter?.addEventListener("input", () => {
  clearTimeout(filterTimer);
  filterTimer = setTimeout(applyFilter, 150);
});

function query(): string {
  const parameters = new URLSearchParams();
  const values = new FormData(filter ?? undefined);
  const search = String(values.get("search") ?? "").trim();
  if (search) parameters.set("search", search);
  if (values.has("failed")) parameters.set("failed", "1");
  return String(parameters) === "" ? "" : `?${parameters}`;
}

/** Subscribes to the changes before it fetches the lists, so that no change is missed in between. */
export function applyFilter(): void {
  clearTimeout(filterTimer);
  history.replaceState(null, "", location.pathname + query());
  followChanges(loadLists);
}

async function loadLists(): Promise<void> {
  const askedQuery = query();
  const html = await fetch(`/sandbox/parts/lists${askedQuery}`).then(
    (response) => response.text(),
    () => null,
  );
  if (html === null) {
    showToast("The sandbox does not answer.", true);
    return;
  }
  // Somebody has typed more since, and those lists are on their way.
  if (askedQuery !== query()) return;
  const next = elementsOf(html);
  for (const old of document.querySelectorAll("#lists .row[open]")) {
    const twin = next.getElementById(old.id);
    if (twin) keep(old, twin);
  }
  requireElement("lists", HTMLElement).replaceChildren(next);
}

let events: EventSource | undefined;

/** Shows changes as they happen. After a lost connection the page is loaded again, because it has missed some. */
export function followChanges(onOpen?: () => void): void {
  let wasLost = false;
  events?.close();
  events = new EventSource(`/sandbox/events${query()}`);
  events.onopen = () => {
    if (wasLost) {
      location.reload();
      return;
    }
    setLive("live", "live");
    onOpen?.();
  };
  events.onerror = () => {
    wasLost = true;
    setLive("lost", "not connected");
  };
  events.onmessage = ({ data }) => {
    for (const fragment of JSON.parse(data) as readonly Fragment[]) show(fragment);
  };
}
