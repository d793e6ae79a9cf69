/** What a test starts ends with it. */
import { afterEach } from "vitest";
import { closeAll } from "./start.ts";

afterEach(closeAll);
