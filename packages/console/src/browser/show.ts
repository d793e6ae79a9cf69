import { elementsOf, requireElement } from "@payhooks/pages/browser";
import { countSelected } from "./selection.ts";

const FOCUSABLE_SELECTOR = "a, button, input, select, summary, [tabindex]";
const SCROLLABLE_SELECTOR = ".log, .scroll, .body";
/** The HTML of each part, as the server last sent it. */
const lastHtml = new Map<string, string>();

/** Puts a part of the page in its place. Selections, opened parts, scroll positions and the focus stay as they are. */
export function show(id: string, html: string): void {
  const target = document.getElementById(id);
  if (!target || lastHtml.get(id) === html) return;
  lastHtml.set(id, html);
  const next = elementsOf(html);
  for (const box of target.querySelectorAll("input:checked")) {
    const twin = next.getElementById(box.id);
    if (twin instanceof HTMLInputElement) twin.checked = true;
  }
  for (const open of target.querySelectorAll("details[open]")) {
    const twin = next.getElementById(open.id);
    if (twin instanceof HTMLDetailsElement) twin.open = true;
  }
  const scrolled = [...target.querySelectorAll(SCROLLABLE_SELECTOR)].map(({ scrollTop }) => scrollTop);
  const { activeElement } = document;
  const focusedElement = target.contains(activeElement) ? activeElement : null;
  const index = focusedElement
    ? [...target.querySelectorAll(FOCUSABLE_SELECTOR)].indexOf(focusedElement)
    : -1;
  target.replaceChildren(next);
  for (const [i, element] of target.querySelectorAll(SCROLLABLE_SELECTOR).entries())
    element.scrollTop = scrolled[i] ?? 0;
  countSelected();
  if (!focusedElement) return;
  const same = focusedElement.id
    ? document.getElementById(focusedElement.id)
    : target.querySelectorAll<HTMLElement>(FOCUSABLE_SELECTOR)[index];
  (same ?? requireElement("main", HTMLElement)).focus({ preventScroll: true });
}
