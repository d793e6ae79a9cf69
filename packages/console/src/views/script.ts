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
  replay: { title: "Replay", button: "Replay", done: "replayed", explain: "What is replayed waits again until its handlers run. Handlers that have finished are skipped." },
  discard: { title: "Discard", button: "Discard for good", done: "discarded", explain: "No handler will ever run for what is discarded. It cannot be undone." },
};
/** Reasons whose events are read again, and then enter as new events. */
const READ_AGAIN = new Set(["ambiguous", "malformed", "unexpected", "unrecognized"]);
/** How long the dialog waits for the handlers of what was replayed. */
const OUTCOME_LOOKS = 10;
const OUTCOME_EVERY_MS = 500;
let decision;

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-decide]");
  if (!button) return;
  const named = button.dataset.events.split(" ").filter(Boolean);
  const all = named.length === 0 && wantsAll();
  ask(button.dataset.decide, all ? { query: location.search } : { eventIds: named.length > 0 ? named : picked() });
});

/** Opens the dialog, and shows in it what the server says the decision would be about. Only that is decided later. */
async function ask(action, of) {
  const words = WORDS[action];
  decide.classList.remove("running");
  const asked = decision = { action, events: [], note: "", isRunning: false, isStopped: false };
  form.reset();
  document.getElementById("decide-title").textContent = words.title;
  document.getElementById("decide-what").textContent = "Looking at the events…";
  document.getElementById("planned").replaceChildren();
  document.getElementById("expired").hidden = action !== "replay";
  const confirm = document.getElementById("confirm");
  confirm.textContent = words.button;
  confirm.className = action === "discard" ? "danger" : "primary";
  confirm.hidden = false;
  confirm.disabled = true;
  document.getElementById("cancel").textContent = "Cancel";
  document.getElementById("progress").hidden = true;
  document.getElementById("progress-text").textContent = "";
  document.getElementById("failures").replaceChildren();
  for (const field of form.querySelectorAll("textarea, input")) field.disabled = false;
  decide.showModal();
  document.getElementById("note").focus();
  const { answer, failure } = await post({ action: "preview", decision: action, ...of });
  if (decision !== asked) return;
  if (failure !== null || !Array.isArray(answer.events) || typeof answer.html !== "string") {
    document.getElementById("decide-what").textContent = "The events could not be read: nothing was decided. " + (failure ?? "");
    confirm.hidden = true;
    document.getElementById("cancel").textContent = "Close";
    return;
  }
  asked.events = answer.events;
  asked.note = (answer.gone ? " " + answer.gone + " of them are no longer held." : "") +
    (answer.more ? " These are the oldest " + answer.events.length + ": decide about them first, then about the rest." : "");
  document.getElementById("planned").replaceChildren(elementsOf(answer.html));
  countChosen();
}

/** The events whose reason is ticked. */
function chosen() {
  const reasons = new Set([...form.querySelectorAll('input[name="reason"]:checked')].map((box) => box.value));
  return decision.events.filter(({ reason }) => reasons.has(reason));
}

function countChosen() {
  const { action, events, note } = decision;
  const count = chosen().length;
  const confirm = document.getElementById("confirm");
  confirm.disabled = count === 0;
  confirm.textContent = WORDS[action].button + (events.length > 1 ? " (" + count + ")" : "");
  const what = events.length === 1 ? "One event." : count + " of " + events.length + " events, by the reasons that are ticked.";
  document.getElementById("decide-what").textContent = (events.length === 0 ? "Nothing of this is held any longer." : what + " " + WORDS[action].explain) + note;
}

form.addEventListener("change", (event) => {
  if (event.target.name === "reason") countChosen();
});

document.getElementById("cancel").addEventListener("click", stop);
decide.addEventListener("cancel", (event) => { event.preventDefault(); stop(); });

function stop() {
  if (decision?.isRunning) decision.isStopped = true;
  else decide.close();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const events = chosen();
  if (decision.isRunning || events.length === 0) return;
  decision.isRunning = true;
  const { action } = decision;
  const note = form.elements.note.value;
  const evenIfExpired = action === "replay" && form.elements.evenIfExpired.checked;
  for (const field of form.querySelectorAll("textarea, input")) field.disabled = true;
  document.getElementById("confirm").hidden = true;
  document.getElementById("cancel").textContent = "Stop";
  document.getElementById("cancel").focus();
  document.getElementById("progress").hidden = false;
  decide.classList.add("running");
  const bar = document.getElementById("bar");
  bar.max = events.length;
  const done = [];
  let failed = 0;
  for (const one of events) {
    if (decision.isStopped) break;
    const { eventId, revision } = one;
    const { failure } = await post({ action, eventId, revision, note, evenIfExpired });
    if (failure !== null) { failed++; tellFailure(eventId, failure); } else done.push(one);
    bar.value = done.length + failed;
    document.getElementById("progress-text").textContent = bar.value + " of " + events.length + (failed ? ", " + failed + " failed" : "");
  }
  const left = events.length - done.length - failed;
  const summary = done.length + " " + WORDS[action].done + (failed ? ", " + failed + " failed" : "") + (left ? ", stopped before the other " + left : "");
  const outcome = action === "replay" && done.length > 0 ? await outcomeOf(done, summary) : { text: "", isGood: true };
  decision.isRunning = false;
  for (const box of document.querySelectorAll("input.pick, [data-select]")) box.checked = false;
  countSelected();
  refresh();
  if (failed || left || !outcome.isGood) { stayOpen(summary + outcome.text); return; }
  decide.close();
  say(summary + outcome.text);
});

/** What has become of replayed events, as far as it is known after a short while. Someone who stops the waiting gets what is known by then. */
async function outcomeOf(replayed, summary) {
  document.getElementById("cancel").textContent = "Do not wait";
  decision.isStopped = false;
  const reasons = new Map(replayed.map(({ eventId, reason }) => [eventId, reason]));
  const eventIds = [...reasons.keys()];
  let states = null;
  for (let look = 0; look < OUTCOME_LOOKS && !decision.isStopped; look++) {
    document.getElementById("progress-text").textContent = summary + ". Waiting for their handlers…";
    await new Promise((resolve) => setTimeout(resolve, OUTCOME_EVERY_MS));
    const { answer, failure } = await post({ action: "outcomes", eventIds });
    if (failure !== null || !answer.states) continue;
    states = Object.entries(answer.states);
    if (states.every(([, state]) => state !== "waiting" && state !== "running")) break;
  }
  if (states === null) return { text: ": what became of them is not known", isGood: false };
  const counts = new Map();
  for (const [eventId, state] of states) {
    const word = wordOf(state, reasons.get(eventId));
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const text = ": " + [...counts].map(([word, count]) => count + " " + word).join(", ");
  return { text, isGood: !counts.has("held again") && !counts.has("not finished yet") };
}

function wordOf(state, reason) {
  switch (state) {
    case "held": return "held again";
    case "done": return READ_AGAIN.has(reason) ? "read again and settled" : "finished";
    case "stale": return "overtaken, without a run";
    case "discarded": return "discarded by somebody else";
    default: return "not finished yet";
  }
}

/** Leaves the dialog open with a message, until somebody closes it. */
function stayOpen(text) {
  document.getElementById("cancel").textContent = "Close";
  document.getElementById("progress-text").textContent = text + ".";
}

decide.addEventListener("close", () => {
  // The browser tells of a close a little later. The dialog may be open again by then, about another decision.
  if (decide.open) return;
  decision = undefined;
  // The button that opened the dialog may be gone. The browser then leaves the focus in the closed dialog until it draws the page.
  const focused = document.activeElement;
  if (focused === document.body || decide.contains(focused)) document.getElementById("main").focus();
});

function tellFailure(eventId, text) {
  const line = document.createElement("li");
  line.textContent = eventId.slice(0, 8) + "…: " + text;
  document.getElementById("failures").append(line);
}

/** Sends something to the server. \`failure\` says what went wrong, or is null. */
async function post(body) {
  try {
    const response = await fetch(location.pathname, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Payhooks-Console": "1" },
      body: JSON.stringify(body),
    });
    const answer = await response.json().catch(() => ({}));
    return { answer, failure: answer?.ok === true ? null : (answer?.message ?? "The server answered " + response.status + ".") };
  } catch {
    return { answer: {}, failure: "The server does not answer." };
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
