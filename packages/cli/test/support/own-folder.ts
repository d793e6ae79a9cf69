/** Each test file has a folder of its own, which is removed when the file has ended. */
import { afterAll } from "vitest";
import { makeFolder } from "./files.ts";

afterAll(makeFolder());
