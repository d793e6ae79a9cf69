/** A bulk replay that is killed in the middle, on the inboxes that outlive a process. */
import { describe } from "vitest";
import { runsAgain } from "./harness/again-cases.ts";
import { DURABLE } from "./harness/receivers.ts";

describe("a bulk replay", () => {
  for (const [name, inboxAt] of DURABLE) runsAgain({ name, inboxAt });
});
