import { clockCases } from "../../../test/support/clock-cases.ts";
import { quietClock, systemClock } from "../src/clock.ts";

clockCases("systemClock", systemClock);
clockCases("quietClock", quietClock);
