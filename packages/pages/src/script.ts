/**
 * The beginning of every page's script. The browser runs it as it is written here. It never builds HTML: the server
 * sends parts that are escaped already, and everything else is set as text.
 */
export const PAGE_SCRIPT = `"use strict";
const toast = document.getElementById("toast");
const live = document.getElementById("live");
let toastTimer;

function say(text, isProblem) {
  toast.textContent = text;
  toast.classList.toggle("problem", Boolean(isProblem));
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.textContent = ""; }, isProblem ? 8000 : 2500);
}

function elementsOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  addLocalTimes(template.content);
  return template.content;
}

/** The server sends times in UTC. The script shows the local time beside them. */
const isUtc = new Date().getTimezoneOffset() === 0;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

function addLocalTimes(root) {
  if (isUtc) return;
  for (const time of root.querySelectorAll("time:not([data-local])")) {
    const moment = new Date(time.dateTime);
    const isSameDay = moment.getDate() === moment.getUTCDate();
    time.dataset.local = (isSameDay ? "" : day.format(moment) + " ") + clock.format(moment);
    time.title = time.dateTime + "\\n" + moment.toString();
    const local = document.createElement("span");
    local.className = "local";
    local.textContent = " / " + time.dataset.local;
    time.append(local);
  }
}

function nameZones() {
  const zone = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(new Date()).find((part) => part.type === "timeZoneName").value;
  document.getElementById("zones").textContent = isUtc ? "Times: UTC, which is your time zone" : "Times: UTC / yours (" + zone + ")";
}

nameZones();
addLocalTimes(document);

`;
