/** Searches SQLite, Redis and PostgreSQL for the texts of a sealed inbox. */
import { DUMPED } from "./dumps.ts";
import { sealCases } from "./seal-cases.ts";

sealCases(DUMPED);
