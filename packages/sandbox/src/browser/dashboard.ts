import { showLocalTimes } from "@payhooks/pages/browser";
import { act } from "./act.ts";
import { copyText } from "./copy.ts";
import { loadDetail } from "./detail.ts";
import { applyFilter, filter, followChanges } from "./feed.ts";
import { bodyOf, fillReference, showExplanation } from "./forms.ts";
import { chooseTab, isTab, moveBetweenTabs } from "./tabs.ts";

// The dashboard's buttons and forms have their action in `data-` attributes.

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  const { post, put } = form.dataset;
  if (form === filter) applyFilter();
  else if (put) act(form, "PUT", put, bodyOf(form));
  else if (post) act(form, "POST", post, bodyOf(form));
  else return;
  event.preventDefault();
});

document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("button") : null;
  if (!button) return;
  const { post, body, delete: path, copy, reference } = button.dataset;
  if (post) act(button, "POST", post, body ? JSON.parse(body) : {});
  if (path) act(button, "DELETE", path);
  if (copy) copyText(copy);
  if (reference) fillReference(button, reference);
  if (isTab(button)) chooseTab(button);
});

document.addEventListener("keydown", moveBetweenTabs);

document.addEventListener("change", ({ target }) => {
  if (target instanceof HTMLSelectElement && target.dataset.explain)
    showExplanation(target, target.dataset.explain);
});

document.addEventListener(
  "toggle",
  ({ target }) => {
    if (target instanceof HTMLDetailsElement && target.open) loadDetail(target);
  },
  true,
);

showLocalTimes();
followChanges();
