import { showLocalTimes } from "@payhooks/pages/browser";
import { listenToButtons } from "./decide.ts";
import { keepUpToDate } from "./live.ts";
import { listenToBoxes } from "./selection.ts";

// Lists, search and single events work without this script, because they are links and a form. It updates the page, and
// sends decisions.

showLocalTimes();
listenToBoxes();
listenToButtons();
keepUpToDate();
