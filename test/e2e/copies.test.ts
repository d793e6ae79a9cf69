import { afterEach, expect, it } from "vitest";
import { closeMerchants, PATHS, requestOf, startMerchant } from "./merchant-server.ts";
import { Wire } from "./wire.ts";

afterEach(closeMerchants);

const SOCKETS = 500;
const COPIES_PER_SOCKET = 20;

it("a receiver runs the handler once for 10,000 copies over 500 sockets, and answers each of them 200", async () => {
  let runs = 0;
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const t = await startMerchant({
    register: (receiver) =>
      receiver.onDeposit(async () => {
        runs++;
        await gate;
      }),
  });
  const copy = requestOf(PATHS.payments, t.callback());
  const wires = await Promise.all(Array.from({ length: SOCKETS }, () => Wire.open(t.port)));
  // Every socket writes all of its copies before it reads an answer; none has an answer that waits for the handler.
  const written = await Promise.all(
    wires.flatMap((wire) => Array.from({ length: COPIES_PER_SOCKET }, () => wire.write(copy))),
  );
  expect(written.filter(Boolean)).toHaveLength(SOCKETS * COPIES_PER_SOCKET);
  const answers = await Promise.all(
    wires.map(async (wire) => {
      const read: string[] = [];
      for (let n = 0; n < COPIES_PER_SOCKET; n++) {
        const { status, body } = await wire.answer();
        read.push(`${status} ${body}`);
      }
      return read;
    }),
  );
  const tally = new Map<string, number>();
  for (const answer of answers.flat()) tally.set(answer, (tally.get(answer) ?? 0) + 1);
  expect([...tally]).toEqual([['200 {"received":true}', SOCKETS * COPIES_PER_SOCKET]]);
  await t.until(({ type }) => type === "started");
  release();
  await t.until(({ type }) => type === "finished");
  await t.clock.advance("1h");
  expect(runs).toBe(1);
  const count = (type: string): number => t.notices.filter((notice) => notice.type === type).length;
  expect({ accepted: count("accepted"), duplicate: count("duplicate"), started: count("started") }).toEqual({
    accepted: 1,
    duplicate: SOCKETS * COPIES_PER_SOCKET - 1,
    started: 1,
  });
  for (const wire of wires) wire.destroy();
});
