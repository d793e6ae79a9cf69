import { clockCases } from "../../../test/support/clock-cases.ts";
import { systemClock } from "../src/clock.ts";

clockCases("the sandbox's clock", systemClock);
