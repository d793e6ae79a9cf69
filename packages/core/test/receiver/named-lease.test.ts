import { createReceiver, memoryInbox, type NamedLease } from "@payhooks/core";
import { createTestKeys } from "@payhooks/core/testing";
import { afterEach, describe, expect, it } from "vitest";

const { publicKey } = createTestKeys();
const receiver = createReceiver({ payments: { publicKey }, inbox: memoryInbox() });
const MINUTE_MS = 60_000;

async function taken(name: string): Promise<NamedLease> {
  return (await receiver.lease(name, MINUTE_MS)) ?? expect.fail("another holder has the lease");
}

describe("the name of a lease", () => {
  it.each(["a", "nightly-report", "a9", "b".repeat(50)])("can be %j", async (name) => {
    const lease = await taken(name);
    await lease.end("done");
    expect(await receiver.viewLease(name)).toEqual({ note: "done", isTaken: false });
  });

  it.each([
    ["", '""'],
    ["9x", '"9x"'],
    ["-x", '"-x"'],
    ["A", '"A"'],
    ["a:b", '"a:b"'],
    ["a\n", '"a\\n"'],
    ["c".repeat(51), `"${"c".repeat(51)}"`],
    [7 as unknown as string, "7"],
  ])("cannot be %j, and the error shows the name as it was given", async (name, said) => {
    const wrong = {
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining(said),
      fix: "Use up to 50 lowercase letters, digits and -, beginning with a letter.",
    };
    await expect(receiver.lease(name, MINUTE_MS)).rejects.toMatchObject(wrong);
    await expect(receiver.viewLease(name)).rejects.toMatchObject(wrong);
  });
});

describe("the note of a lease", () => {
  const leases: NamedLease[] = [];
  afterEach(async () => {
    for (const lease of leases.splice(0)) await lease.end("");
  });

  it("has at most 15,000 characters", async () => {
    const lease = await taken("longest");
    leases.push(lease);
    const longest = "n".repeat(15_000);
    expect(await lease.renew(longest)).toBe(true);
    expect(await receiver.viewLease("longest")).toMatchObject({ note: longest });
  });

  it("is refused if it is longer, and the lease and its note stay as they were", async () => {
    const lease = await taken("too-long");
    leases.push(lease);
    await lease.renew("before");
    const wrong = {
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining("The note of a lease has 15001 characters."),
      fix: "Keep it to 15000 characters.",
    };
    await expect(lease.renew("n".repeat(15_001))).rejects.toMatchObject(wrong);
    await expect(lease.end("n".repeat(15_001))).rejects.toMatchObject(wrong);
    expect(await receiver.viewLease("too-long")).toEqual({ note: "before", isTaken: true });
  });

  it("is refused if it is not text", async () => {
    const lease = await taken("no-text");
    leases.push(lease);
    await expect(lease.renew(7 as unknown as string)).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining("The note of a lease is 7."),
      fix: "Give a text, such as String(value) or JSON.stringify(value).",
    });
  });
});
