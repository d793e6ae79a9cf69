import { PAGE_SCRIPT } from "@payhooks/pages";

/**
 * The page's script. The browser runs it as it is written here. Lists, search and single events work without it, since
 * they are links and a form. The script updates the page, and sends decisions.
 */
export const SCRIPT: string = `${PAGE_SCRIPT}const said = document.getElementById("said");
const problem = document.getElementById("problem");
const decide = document.getElementById("decide");
const FOCUSABLE = "a, button, input, select, summary, [tabindex]";
const last = new Map();
let events;
let isLoading = false;
let isStale = false;

/** Updates the parts of the page. What the user has selected or opened stays, and so does the focus. */
async function refresh() {
  if (isLoading) { isStale = true; return; }
  isLoading = true;
  try {
    const response = await fetch(withParameter("part", "regions"));
    if (response.status === 403) { leave(); return; }
    const answer = await response.json().catch(() => null);
    if (!answer?.regions) {
      setLive("lost", "not up to date");
      showProblem("The page could not be updated. " + reasonOf(response, answer));
      return;
    }
    if (events?.readyState === EventSource.OPEN) setLive("live", "live");
    showProblem(answer.problem);
    for (const [id, html] of Object.entries(answer.regions)) show(id, html);
    countSelected();
  } catch {
    // The stream of events reports when the server can be reached again.
  } finally {
    isLoading = false;
    if (isStale) { isStale = false; refresh(); }
  }
}

/** Why an answer has no regions. It may come from the console, from the application around it, or from a proxy. */
function reasonOf({ status }, answer) {
  if (typeof answer?.message === "string") return answer.message;
  if (status >= 500) return "The server failed: it answered " + status + ".";
  return "You may have been signed out: load it again.";
}

function withParameter(name, value) {
  const address = new URL(location.href);
  address.searchParams.set(name, value);
  address.hash = "";
  return address;
}

function show(id, html) {
  const place = document.getElementById(id);
  if (!place || last.get(id) === html) return;
  last.set(id, html);
  const next = elementsOf(html);
  for (const box of place.querySelectorAll("input:checked")) {
    const twin = next.getElementById(box.id);
    if (twin) twin.checked = true;
  }
  for (const open of place.querySelectorAll("details[open]")) {
    const twin = next.getElementById(open.id);
    if (twin) twin.open = true;
  }
  const scrolled = [...place.querySelectorAll(".log, .scroll, .body")].map((element) => element.scrollTop);
  const focus = place.contains(document.activeElement) ? document.activeElement : null;
  const index = focus ? [...place.querySelectorAll(FOCUSABLE)].indexOf(focus) : -1;
  place.replaceChildren(next);
  [...place.querySelectorAll(".log, .scroll, .body")].forEach((element, i) => { element.scrollTop = scrolled[i] ?? 0; });
  if (!focus) return;
  const same = focus.id ? document.getElementById(focus.id) : place.querySelectorAll(FOCUSABLE)[index];
  (same ?? document.getElementById("main")).focus({ preventScroll: true });
}

function leave() {
  events?.close();
  setLive("lost", "no access");
  showProblem("You may no longer see this page. Load it again.");
}

function showProblem(text) {
  problem.textContent = text ?? "";
  problem.hidden = !text;
}

function setLive(state, text) {
  live.dataset.state = state;
  live.textContent = text;
}

/** A hidden page closes its connection, since a browser has only a few for one site. */
function listen() {
  events?.close();
  if (document.hidden) return;
  events = new EventSource("?stream=1");
  events.onopen = () => { setLive("live", "live"); refresh(); };
  events.onmessage = () => refresh();
  events.onerror = () => {
    setLive("lost", "not connected");
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

document.addEventListener("visibilitychange", listen);

/* Selecting events. */

const picked = () => [...document.querySelectorAll("input.pick:checked")].map((box) => box.value);
const wantsAll = () => document.getElementById("select-all")?.checked === true;

function countSelected() {
  const place = document.getElementById("selected");
  if (!place) return;
  const count = picked().length;
  place.textContent = wantsAll() ? "all that match" : count + " selected";
  for (const button of document.querySelectorAll("#selection [data-decide]")) button.disabled = count === 0 && !wantsAll();
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.dataset.select) {
    const boxes = document.querySelectorAll("input.pick, #select-page");
    for (const one of boxes) one.checked = box.checked;
    const all = document.getElementById("select-all");
    if (all && !box.checked) all.checked = false;
  } else if (box.matches("input.pick") && !box.checked) {
    for (const one of document.querySelectorAll("[data-select]")) one.checked = false;
  } else if (!box.matches("input.pick")) return;
  countSelected();
});

/* Deciding about them. */

const form = decide.querySelector("form");
const WORDS = {
  replay: { title: "Replay", button: "Replay", done: "replayed", explain: "Handlers that have not finished run again." },
  discard: { title: "Discard", button: "Discard for good", done: "discarded", explain: "No handler will ever run for this. It cannot be undone." },
};
let decision;

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-decide]");
  if (!button) return;
  const named = button.dataset.events.split(" ").filter(Boolean);
  ask(button.dataset.decide, named.length > 0 ? named : picked(), named.length === 0 && wantsAll());
});

function ask(action, ids, all) {
  const words = WORDS[action];
  decision = { action, ids, all, isRunning: false, isStopped: false };
  form.reset();
  document.getElementById("decide-title").textContent = words.title;
  const what = all ? "All events that match the filter" : ids.length === 1 ? "One event" : ids.length + " events";
  document.getElementById("decide-what").textContent = what + ". " + words.explain;
  document.getElementById("expired").hidden = action !== "replay";
  const confirm = document.getElementById("confirm");
  confirm.textContent = words.button;
  confirm.className = action === "discard" ? "danger" : "primary";
  confirm.hidden = false;
  document.getElementById("cancel").textContent = "Cancel";
  document.getElementById("progress").hidden = true;
  document.getElementById("failures").replaceChildren();
  for (const field of form.querySelectorAll("textarea, input")) field.disabled = false;
  decide.showModal();
  document.getElementById("note").focus();
}

document.getElementById("cancel").addEventListener("click", stop);
decide.addEventListener("cancel", (event) => { event.preventDefault(); stop(); });

function stop() {
  if (decision?.isRunning) decision.isStopped = true;
  else decide.close();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (decision.isRunning) return;
  decision.isRunning = true;
  const { action, all } = decision;
  const note = form.elements.note.value;
  const evenIfExpired = action === "replay" && form.elements.evenIfExpired.checked;
  for (const field of form.querySelectorAll("textarea, input")) field.disabled = true;
  document.getElementById("confirm").hidden = true;
  document.getElementById("cancel").textContent = "Stop";
  document.getElementById("cancel").focus();
  document.getElementById("progress").hidden = false;
  let ids = decision.ids;
  try {
    if (all) ids = await allIds();
  } catch {
    decision.isRunning = false;
    stayOpen("The list of events could not be read: nothing was decided.");
    return;
  }
  const bar = document.getElementById("bar");
  bar.max = ids.length || 1;
  let failed = 0;
  let done = 0;
  for (const eventId of ids) {
    if (decision.isStopped) break;
    const failure = await send({ action, eventId, note, evenIfExpired });
    if (failure) { failed++; tellFailure(eventId, failure); } else done++;
    bar.value = done + failed;
    document.getElementById("progress-text").textContent = done + failed + " of " + ids.length + (failed ? ", " + failed + " failed" : "");
  }
  decision.isRunning = false;
  for (const box of document.querySelectorAll("input.pick, [data-select]")) box.checked = false;
  countSelected();
  const summary = done + " " + WORDS[action].done + (failed ? ", " + failed + " failed" : "") + (decision.isStopped ? ", stopped" : "");
  refresh();
  if (failed) { stayOpen(summary); return; }
  decide.close();
  say(summary);
});

/** Leaves the dialog open with a message, until somebody closes it. */
function stayOpen(text) {
  document.getElementById("cancel").textContent = "Close";
  document.getElementById("progress-text").textContent = text;
}

decide.addEventListener("close", () => {
  if (document.activeElement === document.body) document.getElementById("main").focus();
});

function tellFailure(eventId, text) {
  const line = document.createElement("li");
  line.textContent = eventId.slice(0, 8) + "…: " + text;
  document.getElementById("failures").append(line);
}

/** The ids of all events that match the filter, page by page. Throws when one of the pages cannot be read. */
async function allIds() {
  const ids = [];
  let cursor = "";
  do {
    const address = withParameter("part", "ids");
    address.searchParams.delete("cursor");
    if (cursor) address.searchParams.set("cursor", cursor);
    const response = await fetch(address);
    const page = response.ok ? await response.json() : null;
    if (!Array.isArray(page?.ids)) throw new Error("The answer has no ids.");
    ids.push(...page.ids);
    cursor = page.next;
    document.getElementById("progress-text").textContent = ids.length + " found";
  } while (cursor && !decision.isStopped);
  return ids;
}

/** Sends one decision. Returns what went wrong, or null. */
async function send(body) {
  try {
    const response = await fetch(location.pathname, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Payhooks-Console": "1" },
      body: JSON.stringify(body),
    });
    const answer = await response.json().catch(() => ({}));
    return answer.ok ? null : (answer.message ?? "The server answered " + response.status + ".");
  } catch {
    return "The server does not answer.";
  }
}

/** Tells users of screen readers when the number of held events changes. */
let heldBefore;
new MutationObserver(() => {
  const text = document.querySelector("#tile-held .number")?.textContent;
  if (heldBefore !== undefined && text !== heldBefore) said.textContent = text + " held";
  heldBefore = text;
}).observe(document.getElementById("counts"), { childList: true });
heldBefore = document.querySelector("#tile-held .number")?.textContent;

countSelected();
listen();
`;
