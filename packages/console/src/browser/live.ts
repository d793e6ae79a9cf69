import { requireElement, setLive } from "@payhooks/pages/browser";
import { show } from "./show.ts";

/** The server's answer about the page. Everything may be missing: something else than the console may have answered. */
interface RegionsAnswer {
  readonly regions?: Readonly<Record<string, string>>;
  readonly problem?: string | null;
  readonly message?: unknown;
}

/** How long the page waits after a connection that the server has ended. */
const RECONNECT_DELAY_MS = 5_000;

const problem = requireElement("problem", HTMLElement);
const announcement = requireElement("said", HTMLElement);
let events: EventSource | undefined;
let isLoading = false;
let isStale = false;

/** Keeps the page up to date. A hidden page closes its connection, because a browser has only a few for one site. */
export function keepUpToDate(): void {
  document.addEventListener("visibilitychange", connect);
  sayWhenHeldChanges();
  connect();
}

function connect(): void {
  events?.close();
  if (document.hidden) return;
  const openedSource = new EventSource("?stream=1");
  events = openedSource;
  openedSource.onopen = () => {
    setLive("live", "live");
    refresh();
  };
  openedSource.onmessage = () => refresh();
  openedSource.onerror = () => {
    setLive("lost", "not connected");
    if (openedSource.readyState === EventSource.CLOSED) setTimeout(connect, RECONNECT_DELAY_MS);
  };
}

/** Updates the parts of the page. */
export async function refresh(): Promise<void> {
  isStale = true;
  if (isLoading) return;
  isLoading = true;
  while (isStale) {
    isStale = false;
    try {
      await load();
    } catch {
      // The stream of events reports when the server can be reached again.
    }
  }
  isLoading = false;
}

async function load(): Promise<void> {
  const address = new URL(location.href);
  address.searchParams.set("part", "regions");
  address.hash = "";
  const response = await fetch(address);
  if (response.status === 403) {
    events?.close();
    setLive("lost", "no access");
    showProblem("You may no longer see this page. Load it again.");
    return;
  }
  const answer = (await response.json().catch(() => null)) as RegionsAnswer | null;
  if (!answer?.regions) {
    setLive("lost", "not up to date");
    showProblem(`The page could not be updated. ${reasonOf(response, answer)}`);
    return;
  }
  if (events?.readyState === EventSource.OPEN) setLive("live", "live");
  showProblem(answer.problem);
  for (const [id, html] of Object.entries(answer.regions)) show(id, html);
}

/** Why an answer has no regions. It may come from the console, from the application around it, or from a proxy. */
function reasonOf({ status }: Response, answer: RegionsAnswer | null): string {
  if (typeof answer?.message === "string") return answer.message;
  if (status >= 500) return `The server failed: it answered ${status}.`;
  return "You may have been signed out: load it again.";
}

function showProblem(text: string | null | undefined): void {
  problem.textContent = text ?? "";
  problem.hidden = !text;
}

/** Tells users of screen readers when the number of held events changes. */
function sayWhenHeldChanges(): void {
  const heldText = () => document.querySelector("#tile-held .number")?.textContent;
  let before = heldText();
  new MutationObserver(() => {
    const now = heldText();
    if (before !== undefined && now !== before) announcement.textContent = `${now} held`;
    before = now;
  }).observe(requireElement("counts", HTMLElement), { childList: true });
}
