import { clockCases } from "../../../../test/support/clock-cases.ts";
import { systemClock } from "../../src/time/clock.ts";

clockCases("the platform's clock", systemClock);
