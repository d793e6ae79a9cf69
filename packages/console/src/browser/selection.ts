const boxes = (selector: string): readonly HTMLInputElement[] => [
  ...document.querySelectorAll<HTMLInputElement>(selector),
];

/** The ids of the events that are selected. */
export function selectedEventIds(): readonly string[] {
  return boxes("input.pick:checked").map(({ value }) => value);
}

/** True if everything that matches is selected, on every page. */
export function wantsAll(): boolean {
  return boxes("#select-all:checked").length > 0;
}

export function selectNothing(): void {
  for (const box of boxes("input.pick, [data-select]")) box.checked = false;
  countSelected();
}

/** Says how many events are selected. Without any, nothing can be decided. */
export function countSelected(): void {
  const label = document.getElementById("selected");
  if (!label) return;
  const count = selectedEventIds().length;
  label.textContent = wantsAll() ? "all that match" : `${count} selected`;
  for (const button of document.querySelectorAll<HTMLButtonElement>("#selection [data-decide]")) {
    button.disabled = count === 0 && !wantsAll();
  }
}

/** A box that selects several events ticks their boxes. It is no longer ticked once one of them is not. */
export function listenToBoxes(): void {
  document.addEventListener("change", ({ target: box }) => {
    if (!(box instanceof HTMLInputElement)) return;
    if (box.dataset.select) {
      for (const checkbox of boxes("input.pick, #select-page")) checkbox.checked = box.checked;
      if (!box.checked) for (const all of boxes("#select-all")) all.checked = false;
    } else if (!box.matches("input.pick")) return;
    else if (!box.checked) for (const checkbox of boxes("[data-select]")) checkbox.checked = false;
    countSelected();
  });
  countSelected();
}
