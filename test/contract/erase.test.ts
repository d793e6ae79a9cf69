/** Searches the inboxes' databases for the texts of an erased customer. */
import { DUMPED } from "./dumps.ts";
import { eraseCases } from "./erase-cases.ts";

eraseCases(DUMPED);
