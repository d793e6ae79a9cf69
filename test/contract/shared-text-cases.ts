/** Texts that all processes share, and the leases of tasks that are made of them (docs/guides/inboxes.md). */
import { expect } from "vitest";
import { type NamedLease, takeLease, viewLease } from "../../packages/core/src/inbox/named-lease.ts";
import { type ContractCase, onFreshData, type Process } from "./inbox-processes.ts";

const TASK = "sweep";

/** Takes the lease of the task in a process, for as long as the lease of a run. */
function take({ inbox, clock }: Process, lengthMs: number): Promise<NamedLease | null> {
  return takeLease(inbox.texts, TASK, lengthMs, clock.token());
}

async function taken(process: Process, lengthMs: number): Promise<NamedLease> {
  return (await take(process, lengthMs)) ?? expect.fail("another holder has the lease");
}

export const sharedTextCases: readonly ContractCase[] = [
  onFreshData("a shared text: no change of another process gets lost", async (rig) => {
    const processes = [rig.start(), rig.start(), rig.start()];
    const add = ({ inbox }: Process): Promise<number> =>
      inbox.texts.change("count", (text) => {
        const next = Number(text ?? 0) + 1;
        return { answer: next, text: String(next) };
      });
    const answers = await rig.until(Promise.all([...processes, ...processes, ...processes].map(add)));
    expect(answers.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const { inbox } of processes) expect(await rig.until(inbox.texts.read("count"))).toBe("9");
  }),

  onFreshData("a shared text is not listed, not counted, and never due", async (rig) => {
    const { inbox } = rig.start();
    await rig.until(inbox.texts.change("plain", () => ({ answer: null, text: "a text" })));
    const { waiting, retrying, running, held, oldestDueMs } = await rig.until(inbox.health());
    const none = { waiting: 0, retrying: 0, running: 0, held: 0, oldestDueMs: null };
    expect({ waiting, retrying, running, held, oldestDueMs }).toEqual(none);
    expect((await rig.until(inbox.events.list())).events).toEqual([]);
    expect(await rig.until(inbox.texts.read("other"))).toBeNull();
  }),

  onFreshData("a shared text whose write got no answer is written once", async (rig) => {
    let isLost = false;
    const process = rig.start((moment, call) => {
      if (moment !== "after" || !call.startsWith("text") || isLost) return undefined;
      isLost = true;
      return "lose";
    });
    const append = process.inbox.texts.change("line", (text) => ({ answer: null, text: `${text ?? ""}x` }));
    await rig.until(append);
    expect(isLost).toBe(true);
    expect(await rig.until(rig.start().inbox.texts.read("line"))).toBe("x");
  }),

  onFreshData("a task: one process at a time has its lease, and leaves its note to the next", async (rig) => {
    const [first, second] = [rig.start(), rig.start()];
    const both = await rig.until(Promise.all([take(first, rig.leaseMs * 4), take(second, rig.leaseMs * 4)]));
    const leases = both.filter((lease) => lease !== null);
    expect(leases).toHaveLength(1);
    const [lease] = leases;
    expect(lease?.note).toBe("");
    expect(await rig.until(lease?.renew("halfway"))).toBe(true);
    expect(await rig.until(viewLease(second.inbox.texts, TASK))).toEqual({ note: "halfway", isTaken: true });
    expect(await rig.until(take(second, rig.leaseMs * 4))).toBeNull();
    expect(await rig.until(lease?.end("line one\nline two"))).toBe(true);
    expect(await rig.until(lease?.renew("too late"))).toBe(false);
    expect((await rig.until(taken(second, rig.leaseMs * 4))).note).toBe("line one\nline two");
  }),

  onFreshData(
    "a task whose process dies is taken over when its lease has ended, and not before",
    async (rig) => {
      const [dying, other] = [rig.start(), rig.start()];
      const lease = await rig.until(taken(dying, rig.leaseMs * 2));
      expect(await rig.until(lease.renew("done so far"))).toBe(true);
      const keptAt = rig.now();
      dying.kill();
      let next: NamedLease | null = null;
      for (let step = 0; step < 100 && next === null; step++) {
        await rig.advance(rig.leaseMs / 8);
        next = await rig.until(take(other, rig.leaseMs * 2));
      }
      expect(next?.note).toBe("done so far");
      // The store's clock may be some milliseconds away from that of the processes.
      expect(rig.now() - keptAt).toBeGreaterThan(rig.leaseMs * 1.9);
    },
  ),

  onFreshData(
    "a task: a process that was frozen past the end of its lease can write nothing any more",
    async (rig) => {
      const [frozen, other] = [rig.start(), rig.start()];
      const old = await rig.until(taken(frozen, rig.leaseMs / 2));
      frozen.freeze();
      await rig.advance(rig.leaseMs);
      const next = await rig.until(taken(other, rig.leaseMs * 4));
      frozen.thaw();
      expect(await rig.until(old.renew("from the past"))).toBe(false);
      expect(await rig.until(old.end("from the past"))).toBe(false);
      expect(await rig.until(next.renew("mine"))).toBe(true);
      expect(await rig.until(viewLease(other.inbox.texts, TASK))).toEqual({ note: "mine", isTaken: true });
    },
  ),

  onFreshData(
    "a task whose lease was taken without an answer belongs to the process that asked",
    async (rig) => {
      let isLost = false;
      const process = rig.start((moment, call) => {
        if (moment !== "after" || !call.startsWith("text") || isLost) return undefined;
        isLost = true;
        return "lose";
      });
      const lease = await rig.until(taken(process, rig.leaseMs * 4));
      expect(isLost).toBe(true);
      expect(await rig.until(lease.end("done"))).toBe(true);
      expect((await rig.until(taken(rig.start(), rig.leaseMs * 4))).note).toBe("done");
    },
  ),
];
