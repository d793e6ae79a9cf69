/** Searches MariaDB for the texts of an erased customer. */
import { DUMPED_MYSQL } from "./dumps-mysql.ts";
import { eraseCases } from "./erase-cases.ts";

eraseCases(DUMPED_MYSQL);
