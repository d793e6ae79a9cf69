import { elementsOf, inPage } from "@payhooks/pages/browser";
import { countSelected } from "./selection.ts";

const FOCUSABLE = "a, button, input, select, summary, [tabindex]";
const SCROLLABLE = ".log, .scroll, .body";
/** The HTML of each part, as the server last sent it. */
const last = new Map<string, string>();

/** Puts a part of the page in its place. What somebody has selected, opened or scrolled stays, and so does the focus. */
export function show(id: string, html: string): void {
  const place = document.getElementById(id);
  if (!place || last.get(id) === html) return;
  last.set(id, html);
  const next = elementsOf(html);
  for (const box of place.querySelectorAll("input:checked")) {
    const twin = next.getElementById(box.id);
    if (twin instanceof HTMLInputElement) twin.checked = true;
  }
  for (const open of place.querySelectorAll("details[open]")) {
    const twin = next.getElementById(open.id);
    if (twin instanceof HTMLDetailsElement) twin.open = true;
  }
  const scrolled = [...place.querySelectorAll(SCROLLABLE)].map(({ scrollTop }) => scrollTop);
  const { activeElement } = document;
  const focused = place.contains(activeElement) ? activeElement : null;
  const index = focused ? [...place.querySelectorAll(FOCUSABLE)].indexOf(focused) : -1;
  place.replaceChildren(next);
  for (const [i, element] of place.querySelectorAll(SCROLLABLE).entries())
    element.scrollTop = scrolled[i] ?? 0;
  countSelected();
  if (!focused) return;
  const same = focused.id
    ? document.getElementById(focused.id)
    : place.querySelectorAll<HTMLElement>(FOCUSABLE)[index];
  (same ?? inPage("main", HTMLElement)).focus({ preventScroll: true });
}
