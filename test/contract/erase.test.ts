/** Searches the inboxes' databases for the texts of an erased customer. */
import { DUMPED_INBOXES } from "./dumped-inboxes.ts";
import { eraseCases } from "./erase-cases.ts";

eraseCases(DUMPED_INBOXES);
