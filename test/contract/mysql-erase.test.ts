/** Searches MariaDB for the texts of an erased customer. */
import { DUMPED_MYSQL_INBOXES } from "./dumped-mysql-inbox.ts";
import { eraseCases } from "./erase-cases.ts";

eraseCases(DUMPED_MYSQL_INBOXES);
