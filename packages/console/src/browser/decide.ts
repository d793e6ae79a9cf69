import { elementsOf, requireElement, showToast } from "@payhooks/pages/browser";
import type { DecidableEvent, DecisionKind } from "../answers.ts";
import { refresh } from "./live.ts";
import { waitForOutcome } from "./outcome.ts";
import { post } from "./post.ts";
import { selectedEventIds, selectNothing, wantsAll } from "./selection.ts";

interface DialogTexts {
  readonly title: string;
  readonly button: string;
  readonly done: string;
  readonly explain: string;
  /** The state that an event must be in, as the end of "no longer …". */
  readonly needs: string;
}

const DIALOG_TEXTS: Readonly<Record<DecisionKind | "again", DialogTexts>> = {
  replay: {
    title: "Replay",
    button: "Replay",
    done: "replayed",
    explain: "Replayed events wait again until their handlers run. Handlers that have finished are skipped.",
    needs: "held",
  },
  again: {
    title: "Replay",
    button: "Run again",
    done: "replayed",
    explain: "The ended events wait again until the ticked handlers have run.",
    needs: "kept as they were",
  },
  discard: {
    title: "Discard",
    button: "Discard for good",
    done: "discarded",
    explain: "No handler will ever run for discarded events. This cannot be undone.",
    needs: "held",
  },
  retry: {
    title: "Try now",
    button: "Try now",
    done: "made due",
    explain: "The next attempt is made now. It is an attempt like any other.",
    needs: "waiting for a later attempt",
  },
};

function isDecisionKind(text: string | undefined): text is DecisionKind {
  return text === "replay" || text === "discard" || text === "retry";
}

const dialog = requireElement("decide", HTMLDialogElement);
const form = requireElement("decide-form", HTMLFormElement);
const title = requireElement("decide-title", HTMLElement);
const description = requireElement("decide-what", HTMLElement);
const plannedElement = requireElement("planned", HTMLElement);
const note = requireElement("note", HTMLTextAreaElement);
const evenIfExpired = requireElement("even-if-expired", HTMLInputElement);
const progress = requireElement("progress", HTMLElement);
const progressText = requireElement("progress-text", HTMLElement);
const bar = requireElement("bar", HTMLProgressElement);
const failures = requireElement("failures", HTMLElement);
const confirm = requireElement("confirm", HTMLButtonElement);
const cancel = requireElement("cancel", HTMLButtonElement);

/** The decision that the dialog asks for. */
interface OpenDecision {
  readonly kind: DecisionKind;
  /** The events that the preview has shown. Only these are decided about. */
  events: readonly DecidableEvent[];
  /** The other facts that the preview has shown. */
  remark: string;
  isRunning: boolean;
  isStopped: boolean;
}
let openDecision: OpenDecision | undefined;

/** The page's buttons open the dialog. They say in `data-` attributes what it is about. */
export function listenToButtons(): void {
  document.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("[data-decide]") : null;
    const kind = button?.dataset.decide;
    if (!isDecisionKind(kind)) return;
    const eventIds = button?.dataset.events?.split(" ").filter(Boolean) ?? [];
    if (eventIds.length > 0) open(kind, { eventIds });
    else open(kind, wantsAll() ? { query: location.search } : { eventIds: selectedEventIds() });
  });
  form.addEventListener("change", ({ target }) => {
    if (openDecision && target instanceof HTMLInputElement && target.name !== "") countChosen(openDecision);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (openDecision && !openDecision.isRunning) sendDecisions(openDecision);
  });
  cancel.addEventListener("click", stop);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    stop();
  });
  dialog.addEventListener("close", () => {
    // The browser reports a close a little later. The dialog may be open again by then, about another decision.
    if (dialog.open) return;
    openDecision = undefined;
    // The button that opened the dialog may be gone. The browser then leaves the focus in the closed dialog until it
    // draws the page.
    const focused = document.activeElement;
    if (focused === document.body || dialog.contains(focused)) requireElement("main", HTMLElement).focus();
  });
}

function stop(): void {
  if (openDecision?.isRunning) openDecision.isStopped = true;
  else dialog.close();
}

/** Opens the dialog, and shows in it the server's preview of the decision. */
async function open(
  kind: DecisionKind,
  which: { readonly query: string } | { readonly eventIds: readonly string[] },
): Promise<void> {
  const decision: OpenDecision = { kind, events: [], remark: "", isRunning: false, isStopped: false };
  openDecision = decision;
  form.reset();
  dialog.classList.remove("running");
  title.textContent = DIALOG_TEXTS[kind].title;
  description.textContent = "Looking at the events…";
  plannedElement.replaceChildren();
  requireElement("expired", HTMLElement).hidden = kind !== "replay";
  confirm.textContent = DIALOG_TEXTS[kind].button;
  confirm.className = kind === "discard" ? "danger" : "primary";
  confirm.hidden = false;
  confirm.disabled = true;
  cancel.textContent = "Cancel";
  progress.hidden = true;
  progressText.textContent = "";
  failures.replaceChildren();
  setDisabled(false);
  dialog.showModal();
  note.focus();
  const { answer, failure } = await post({ action: "preview", decision: kind, ...which });
  if (openDecision !== decision) return;
  const { events, html, gone, more } = answer;
  if (failure !== null || !Array.isArray(events) || typeof html !== "string") {
    description.textContent = `The events could not be read: nothing was decided. ${failure ?? ""}`;
    confirm.hidden = true;
    cancel.textContent = "Close";
    return;
  }
  decision.events = events;
  if (gone) decision.remark += ` ${gone} of them are no longer ${textsOf(decision).needs}.`;
  if (more) {
    decision.remark += ` These are the oldest ${events.length}: decide about them first, then about the rest.`;
  }
  plannedElement.replaceChildren(elementsOf(html));
  countChosen(decision);
}

/** Events that have ended are spoken of in other words. */
function textsOf({ kind, events }: OpenDecision): DialogTexts {
  return DIALOG_TEXTS[events.some(({ handlers }) => handlers) ? "again" : kind];
}

/** The values of the boxes with a name that are ticked. */
function tickedValues(name: string): ReadonlySet<string> {
  const boxes = form.querySelectorAll<HTMLInputElement>(`input[name="${name}"]:checked`);
  return new Set([...boxes].map(({ value }) => value));
}

/** The events whose reason is ticked. Of ended events, only those with a ticked handler. */
function chosenEvents({ events }: OpenDecision): readonly DecidableEvent[] {
  const [reasons, names] = [tickedValues("reason"), tickedValues("handler")];
  return events.filter(
    ({ reason, handlers }) =>
      reasons.has(reason) && (!handlers?.length || handlers.some((name) => names.has(name))),
  );
}

/** The handlers to name in the replay of an event that has ended; without a name, all run, and no effect happens again. */
function replayOptionsFor(
  { handlers = [] }: DecidableEvent,
  names: ReadonlySet<string>,
  repeatEffects: boolean,
): object {
  const chosenHandlers = handlers.filter((name) => names.has(name));
  return chosenHandlers.length === 0 || (!repeatEffects && chosenHandlers.length === handlers.length)
    ? {}
    : { handlers: chosenHandlers, repeatEffects };
}

function countChosen(decision: OpenDecision): void {
  const { events, remark } = decision;
  const texts = textsOf(decision);
  const count = chosenEvents(decision).length;
  confirm.disabled = count === 0;
  confirm.textContent = texts.button + (events.length > 1 ? ` (${count})` : "");
  const many =
    events.length === 1
      ? "One event."
      : `${count} of ${events.length} events, by the reasons that are ticked.`;
  const text =
    events.length === 0 ? `Nothing of this is ${texts.needs} any longer.` : `${many} ${texts.explain}`;
  description.textContent = text + remark;
}

/** Sends the decision about one event after the other, and shows how far it has come. */
async function sendDecisions(decision: OpenDecision): Promise<void> {
  const { kind } = decision;
  const events = chosenEvents(decision);
  if (events.length === 0) return;
  decision.isRunning = true;
  const options = { note: note.value, evenIfExpired: kind === "replay" && evenIfExpired.checked };
  const [names, repeatEffects] = [tickedValues("handler"), tickedValues("repeatEffects").size > 0];
  setDisabled(true);
  confirm.hidden = true;
  cancel.textContent = "Stop";
  cancel.focus();
  progress.hidden = false;
  dialog.classList.add("running");
  bar.max = events.length;
  const doneEvents: DecidableEvent[] = [];
  let failedCount = 0;
  const failedText = () => (failedCount > 0 ? `, ${failedCount} failed` : "");
  for (const event of events) {
    if (decision.isStopped) break;
    const { eventId, revision } = event;
    const { failure } = await post({
      action: kind,
      eventId,
      revision,
      ...options,
      ...replayOptionsFor(event, names, repeatEffects),
    });
    if (failure === null) doneEvents.push(event);
    else {
      failedCount++;
      showFailure(eventId, failure);
    }
    bar.value = doneEvents.length + failedCount;
    progressText.textContent = `${bar.value} of ${events.length}${failedText()}`;
  }
  const leftCount = events.length - doneEvents.length - failedCount;
  let summary = `${doneEvents.length} ${DIALOG_TEXTS[kind].done}${failedText()}`;
  if (leftCount > 0) summary += `, stopped before the other ${leftCount}`;
  let isGood = failedCount === 0 && leftCount === 0;
  if (kind === "replay" && doneEvents.length > 0) {
    cancel.textContent = "Do not wait";
    decision.isStopped = false;
    progressText.textContent = `${summary}. Waiting for their handlers…`;
    const outcome = await waitForOutcome(doneEvents, () => decision.isStopped);
    summary += outcome.text;
    isGood &&= outcome.isGood;
  }
  decision.isRunning = false;
  selectNothing();
  refresh();
  if (isGood) {
    dialog.close();
    showToast(summary);
  } else {
    cancel.textContent = "Close";
    progressText.textContent = `${summary}.`;
  }
}

function setDisabled(isDisabled: boolean): void {
  for (const field of form.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("textarea, input")) {
    field.disabled = isDisabled;
  }
}

function showFailure(eventId: string, text: string): void {
  const line = document.createElement("li");
  line.textContent = `${eventId.slice(0, 8)}…: ${text}`;
  failures.append(line);
}
