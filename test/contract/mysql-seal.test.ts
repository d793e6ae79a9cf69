/** Searches MariaDB for the texts of a sealed inbox. */
import { DUMPED_MYSQL_INBOXES } from "./dumped-mysql-inbox.ts";
import { sealCases } from "./seal-cases.ts";

sealCases(DUMPED_MYSQL_INBOXES);
