/** Searches MariaDB for the texts of a sealed inbox. */
import { DUMPED_MYSQL } from "./dumps-mysql.ts";
import { sealCases } from "./seal-cases.ts";

sealCases(DUMPED_MYSQL);
