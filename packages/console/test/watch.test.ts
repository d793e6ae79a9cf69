import { describe, expect, it } from "vitest";
import { watchLine } from "../src/views/watch.ts";

const BEGAN = Date.UTC(2026, 10, 22, 12, 0, 30);
const note = {
  beganAt: BEGAN,
  endedAt: BEGAN + 5_000,
  nextAt: BEGAN + 300_000,
  open: 12,
  due: 3,
  counts: { new: 1, "not-found": 2 },
  trouble: null,
  last: null,
  givenUp: ["a1", "b2"],
};
const lineOf = (text: string, isTaken = false): string => String(watchLine({ note: text, isTaken }));

describe("the line about missed callbacks", () => {
  it("says when the last round was, and what it found", () => {
    const line = lineOf(JSON.stringify(note));
    expect(line).toContain("the last round ended at");
    expect(line).toContain("Open payments: 12, old enough to be looked up: 3, given up: 2.");
    expect(line).toContain("new 1, not-found 2");
    expect(line).not.toContain("error");
  });

  it("says that a round is under way, was broken off, or had an error", () => {
    const open = JSON.stringify({ ...note, endedAt: null, trouble: "TypeError <b>" });
    expect(lineOf(open, true)).toContain("a round began at");
    expect(lineOf(open)).toContain("a round was broken off that began at");
    expect(lineOf(open)).toContain("Last error: <bdi>TypeError &lt;b&gt;</bdi>.");
  });

  it("is left out if nobody watches, or the note is not one", () => {
    expect(String(watchLine(null))).toBe("");
    for (const text of ["", "{", "null", "[]", '{"beganAt":"x"}', '{"beganAt":1,"open":1,"due":1}']) {
      expect(lineOf(text)).toBe("");
    }
  });
});
