/** Whose turn it is among events whose process has died. */
import { describe, expect, it } from "vitest";
import { OneAtATime } from "../../src/inbox/one-at-a-time.ts";

describe("the turn", () => {
  it("goes to one at a time, in the order in which they came", async () => {
    const turn = new OneAtATime();
    const went: string[] = [];
    const wait = async (key: string): Promise<void> => {
      if (await turn.wait(key)) went.push(key);
      else went.push(`not ${key}`);
    };
    const waiting = [wait("a"), wait("b"), wait("c")];
    // It waits already.
    await wait("b");
    expect(went).toEqual(["a", "not b"]);
    expect(turn.take("a")).toBe(true);
    expect(turn.take("b")).toBe(false);
    turn.release("b");
    expect(turn.take("d")).toBe(false);
    turn.release("a");
    await waiting[1];
    expect(went).toEqual(["a", "not b", "b"]);
    turn.release("b");
    await waiting[2];
    turn.release("c");
    expect(turn.take("d")).toBe(true);
    expect(went).toEqual(["a", "not b", "b", "c"]);
  });

  it("is waited for by a hundred, and by no more", async () => {
    const turn = new OneAtATime();
    expect(turn.take("first")).toBe(true);
    for (let n = 0; n < 100; n++) void turn.wait(`event ${n}`);
    expect(await turn.wait("one more")).toBe(false);
  });
});
