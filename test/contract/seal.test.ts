/** What a sealed inbox leaves in SQLite, Redis and PostgreSQL. */
import { DUMPED } from "./dumps.ts";
import { sealCases } from "./seal-cases.ts";

sealCases(DUMPED);
