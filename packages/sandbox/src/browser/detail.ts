import { elementsOf } from "@payhooks/pages/browser";

const DETAIL_SELECTOR = "[data-detail-here]";

/** Loads the details of a row that was opened. */
export async function loadDetail(row: HTMLDetailsElement): Promise<void> {
  const place = row.querySelector(DETAIL_SELECTOR);
  if (!row.dataset.detail || !place) return;
  try {
    const response = await fetch(row.dataset.detail);
    if (!response.ok) throw new Error(`The sandbox answered ${response.status}`);
    place.replaceChildren(elementsOf(await response.text()));
  } catch {
    place.textContent = "This delivery is no longer in the log.";
  }
}

/** Keeps a row open, with its details, when the server sends it again. */
export function keepOpen(old: Element, next: Element): void {
  if (!(old instanceof HTMLDetailsElement && next instanceof HTMLDetailsElement && old.open)) return;
  next.open = true;
  const loaded = old.querySelector(DETAIL_SELECTOR)?.childNodes;
  if (loaded) next.querySelector(DETAIL_SELECTOR)?.replaceChildren(...loaded);
}
