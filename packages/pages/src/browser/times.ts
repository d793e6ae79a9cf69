const isUtc = new Date().getTimezoneOffset() === 0;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Adds the local time to the times below an element, which the server sends in UTC. */
export function addLocalTimes(root: ParentNode): void {
  if (isUtc) return;
  for (const time of root.querySelectorAll<HTMLTimeElement>("time:not([data-local])")) {
    const moment = new Date(time.dateTime);
    const isSameDay = moment.getDate() === moment.getUTCDate();
    time.dataset.local = isSameDay ? clock.format(moment) : `${day.format(moment)} ${clock.format(moment)}`;
    time.title = `${time.dateTime}\n${moment}`;
    const local = document.createElement("span");
    local.className = "local";
    local.textContent = ` / ${time.dataset.local}`;
    time.append(local);
  }
}

/** Adds the local time to all times of the page, and names the time zones. */
export function showLocalTimes(): void {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(new Date());
  const zone = parts.find(({ type }) => type === "timeZoneName")?.value;
  const zones = document.getElementById("zones");
  if (zones)
    zones.textContent = isUtc ? "Times: UTC, which is your time zone" : `Times: UTC / yours (${zone})`;
  addLocalTimes(document);
}
