import { PAGE_SCRIPT } from "@payhooks/pages";

/** Copies a text. Pages that came over plain HTTP from another machine have no clipboard. */
export const COPY_SCRIPT: string = `async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    say(isSecureContext
      ? "The browser does not allow copying here."
      : "Browsers copy only over HTTPS or on this machine. Select the text, and copy it yourself.", true);
  }
}
`;

/**
 * The dashboard's script. The browser runs it as it is written here. It never builds HTML: the server sends rows that
 * are escaped already, and everything else is set as text.
 */
export const DASHBOARD_SCRIPT: string = `${PAGE_SCRIPT}${COPY_SCRIPT}
async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: method === "DELETE" ? undefined : JSON.stringify(body ?? {}),
  });
  const answer = await response.json();
  if (!answer.success) throw new Error(answer.data?.message ?? "The sandbox answered " + response.status);
  return answer.data;
}

async function act(element, method, path, body) {
  if (element.dataset.confirm && !confirm(element.dataset.confirm)) return;
  const button = element.matches("form") ? element.querySelector("button:not([type=button])") : element;
  button.disabled = true;
  try {
    const data = await call(method, path, body);
    say("Done");
    if (data && data.url && path.endsWith("/checkouts")) open(data.url, "_blank", "noopener");
  } catch (error) {
    say(error.message, true);
  } finally {
    button.disabled = false;
    if (document.activeElement === document.body && button.isConnected) button.focus();
  }
}

function bodyOf(form) {
  const body = {};
  for (const element of form.elements) {
    if (!element.name) continue;
    if (element.type === "checkbox") body[element.name] = element.checked;
    else if (element.value !== "") body[element.name] = element.value;
  }
  if ("how" in body) {
    if (body.how !== "once") body.rate = Number(body.how);
    delete body.how;
  }
  return body;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form === filter) { event.preventDefault(); applyFilter(); return; }
  const { post, put } = form.dataset;
  if (!post && !put) return;
  event.preventDefault();
  act(form, put ? "PUT" : "POST", put ?? post, bodyOf(form));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { post, body, copy } = button.dataset;
  if (post) act(button, "POST", post, body ? JSON.parse(body) : {});
  if (button.dataset.delete) act(button, "DELETE", button.dataset.delete);
  if (copy) copyText(copy);
  if (button.getAttribute("role") === "tab") choose(button);
  if (button.dataset.reference) fill(button);
});

/** Puts a reference into the open form. It gets a random ending, since references must be unique. */
function fill(button) {
  const field = button.closest(".inner").querySelector("form:not([hidden]) input[name=reference]");
  field.value = button.dataset.reference + "-" + Math.random().toString(36).slice(2, 7);
  field.focus();
}

function choose(tab) {
  for (const other of tab.parentElement.children) {
    const isChosen = other === tab;
    other.setAttribute("aria-selected", String(isChosen));
    other.tabIndex = isChosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !isChosen;
  }
}

document.addEventListener("keydown", (event) => {
  if (event.target.getAttribute?.("role") !== "tab") return;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...event.target.parentElement.children];
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  choose(next);
  next.focus();
});

document.addEventListener("change", (event) => {
  const { explain } = event.target.dataset;
  if (!explain) return;
  event.target.form.querySelector("[data-explanation]").textContent = JSON.parse(explain)[event.target.value].does;
});

async function load(row) {
  const place = row.querySelector("[data-detail-here]");
  if (!place) return;
  try {
    const response = await fetch(row.dataset.detail);
    if (!response.ok) throw new Error();
    place.innerHTML = await response.text();
    addLocalTimes(place);
  } catch {
    place.textContent = "This delivery is no longer in the log.";
  }
}

document.addEventListener("toggle", (event) => {
  if (event.target.matches("[data-detail]") && event.target.open) load(event.target);
}, true);

function show({ id, list, html }) {
  if (html === undefined) { location.reload(); return; }
  const old = document.getElementById(id);
  if (html === "") { old?.remove(); return; }
  const next = elementsOf(html).firstElementChild;
  if (old) {
    keep(old, next);
    const focus = placeOfFocus(old);
    old.replaceWith(next);
    if (focus) next.querySelectorAll(FOCUSABLE)[focus.index]?.focus({ preventScroll: true });
    return;
  }
  const rows = document.querySelector('[data-list="' + list + '"]');
  if (!rows) return;
  next.classList.add("fresh");
  rows.prepend(next);
  const all = rows.querySelectorAll(".row");
  if (all.length > Number(rows.dataset.limit)) all[all.length - 1].remove();
}

const FOCUSABLE = "summary, button, input, select, a, pre";

function placeOfFocus(element) {
  if (!element.contains(document.activeElement)) return null;
  return { index: [...element.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement) };
}

/** Keeps what somebody has opened or typed when the server sends the same part again. */
function keep(old, next) {
  if (old.open) {
    next.open = true;
    const from = old.querySelector("[data-detail-here]");
    const to = next.querySelector("[data-detail-here]");
    if (from && to) to.replaceChildren(...from.childNodes);
  }
  const forms = next.querySelectorAll("form");
  old.querySelectorAll("form").forEach((form, index) => {
    const isEdited = form.contains(document.activeElement);
    for (const field of isEdited || form.dataset.post ? form.elements : []) {
      const twin = forms[index]?.elements[field.name];
      if (field.name && twin) twin.value = field.value;
    }
    const told = form.querySelector("[data-explanation]");
    const place = forms[index]?.querySelector("[data-explanation]");
    if (told && place) place.textContent = told.textContent;
  });
}

const filter = document.querySelector("form.filter");
let events;
let filterTimer;

function query() {
  const wanted = new URLSearchParams();
  const search = filter.elements.search.value.trim();
  if (search) wanted.set("search", search);
  if (filter.elements.failed.checked) wanted.set("failed", "1");
  return String(wanted) === "" ? "" : "?" + wanted;
}

filter.addEventListener("input", () => {
  clearTimeout(filterTimer);
  filterTimer = setTimeout(applyFilter, 150);
});

/** Subscribes to the changes before it fetches the lists, so that no change is missed in between. */
function applyFilter() {
  clearTimeout(filterTimer);
  history.replaceState(null, "", location.pathname + query());
  listen(async () => {
    const asked = query();
    const html = await fetch("/sandbox/parts/lists" + asked).then((response) => response.text(), () => null);
    if (html === null) { say("The sandbox does not answer.", true); return; }
    const next = elementsOf(html);
    // Somebody has typed more since, and those lists are on their way.
    if (asked !== query()) return;
    for (const old of document.querySelectorAll("#lists .row[open]")) {
      const twin = next.getElementById(old.id);
      if (twin) keep(old, twin);
    }
    document.getElementById("lists").replaceChildren(next);
  });
}

function listen(opened) {
  let wasLost = false;
  events?.close();
  events = new EventSource("/sandbox/events" + query());
  events.onopen = () => {
    if (wasLost) { location.reload(); return; }
    live.dataset.state = "live";
    live.textContent = "live";
    opened?.();
  };
  events.onerror = () => {
    wasLost = true;
    live.dataset.state = "lost";
    live.textContent = "not connected";
  };
  events.onmessage = (event) => { for (const one of JSON.parse(event.data)) show(one); };
}

listen();
`;
