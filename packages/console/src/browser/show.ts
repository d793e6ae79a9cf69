import { elementsOf, inPage } from "@payhooks/pages/browser";
import { countSelected } from "./selection.ts";

const FOCUSABLE = "a, button, input, select, summary, [tabindex]";
const SCROLLABLE = ".log, .scroll, .body";
/** The HTML of each part, as the server last sent it. */
const last = new Map<string, string>();

/** Puts a part of the page in its place. Selections, opened parts, scroll positions and the focus stay as they are. */
export function show(id: string, html: string): void {
  const target = document.getElementById(id);
  if (!target || last.get(id) === html) return;
  last.set(id, html);
  const next = elementsOf(html);
  for (const box of target.querySelectorAll("input:checked")) {
    const twin = next.getElementById(box.id);
    if (twin instanceof HTMLInputElement) twin.checked = true;
  }
  for (const open of target.querySelectorAll("details[open]")) {
    const twin = next.getElementById(open.id);
    if (twin instanceof HTMLDetailsElement) twin.open = true;
  }
  const scrolled = [...target.querySelectorAll(SCROLLABLE)].map(({ scrollTop }) => scrollTop);
  const { activeElement } = document;
  const focused = target.contains(activeElement) ? activeElement : null;
  const index = focused ? [...target.querySelectorAll(FOCUSABLE)].indexOf(focused) : -1;
  target.replaceChildren(next);
  for (const [i, element] of target.querySelectorAll(SCROLLABLE).entries())
    element.scrollTop = scrolled[i] ?? 0;
  countSelected();
  if (!focused) return;
  const same = focused.id
    ? document.getElementById(focused.id)
    : target.querySelectorAll<HTMLElement>(FOCUSABLE)[index];
  (same ?? inPage("main", HTMLElement)).focus({ preventScroll: true });
}
