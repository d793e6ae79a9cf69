import { addLocalTimes } from "./times.ts";

/** The element with an id that the page always has. Throws if it has none, or one of another kind. */
export function requireElement<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`The page has no ${kind.name} with the id ${id}.`);
}

/** The elements of HTML from the server, which has escaped every value in it. Times get the local time beside them. */
export function elementsOf(html: string): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = html;
  addLocalTimes(template.content);
  return template.content;
}

const toast = requireElement("toast", HTMLElement);
let toastTimer: number | undefined;

/** Shows a message for a few seconds. */
export function showToast(text: string, isProblem = false): void {
  toast.textContent = text;
  toast.classList.toggle("problem", isProblem);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.replaceChildren(), isProblem ? 8000 : 2500);
}

const live = requireElement("live", HTMLElement);

/** Says in the head of the page whether it is up to date. */
export function setLive(state: "live" | "lost", text: string): void {
  live.dataset.state = state;
  live.textContent = text;
}
