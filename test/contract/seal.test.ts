/** Searches SQLite, Redis and PostgreSQL for the texts of a sealed inbox. */
import { DUMPED_INBOXES } from "./dumped-inboxes.ts";
import { sealCases } from "./seal-cases.ts";

sealCases(DUMPED_INBOXES);
