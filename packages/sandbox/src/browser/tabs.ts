/** True for the button of a tab. */
export function isTab(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.getAttribute("role") === "tab";
}

/** Shows the panel of a tab, and hides those of the others. */
export function chooseTab(tab: HTMLElement): void {
  for (const other of tabsBeside(tab)) {
    const isChosen = other === tab;
    other.setAttribute("aria-selected", String(isChosen));
    other.tabIndex = isChosen ? 0 : -1;
    const panel = document.getElementById(other.getAttribute("aria-controls") ?? "");
    if (panel) panel.hidden = !isChosen;
  }
}

/** The arrow keys lead to the tabs beside the focused one. */
export function moveBetweenTabs({ target, key }: KeyboardEvent): void {
  const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
  if (step === 0 || !isTab(target)) return;
  const tabs = tabsBeside(target);
  const next = tabs.at((tabs.indexOf(target) + step) % tabs.length);
  if (!next) return;
  chooseTab(next);
  next.focus();
}

function tabsBeside(tab: HTMLElement): HTMLElement[] {
  return [...(tab.parentElement?.querySelectorAll<HTMLElement>(":scope > [role=tab]") ?? [])];
}
