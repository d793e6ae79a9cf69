/** Errors are quiet: a store that refuses for minutes fills neither the log nor the observer, nor is it asked without a pause. */
import { createReceiver, type Notice } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { describe, expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { pause, until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

const FAULT_MS = 4_000;
const EVENTS = 400;
const AT_ONCE = 20;
const SENT = 100;
/** A write is repeated eight times at most while its sender waits, at three commands a time; and some for what runs. */
const COMMANDS_PER_DELIVERY = 50;
/** An attempt is taken, begun and ended with about twenty commands of the scripts. */
const COMMANDS_PER_ATTEMPT = 30;

describe("a Redis that refuses writes", () => {
  it.each([
    // It takes nothing new, and goes on with what it has.
    { name: "is full", setting: "maxmemory", goesOn: true },
    { name: "misses replicas", setting: "min-replicas-to-write", goesOn: false },
  ])(
    "because it $name: few notices, fewer lines, few commands, and all is done afterwards",
    {
      timeout: 60_000,
    },
    ({ setting, goesOn }) =>
      withScope(async (scope) => {
        const redis = await RedisServer.start(scope);
        const lines: string[] = [];
        const notices: Notice[] = [];
        const write = (message: string): void => void lines.push(message);
        const receiver = scope.add(
          createReceiver({
            payments: { publicKey: keys.publicKey },
            inbox: redisInbox(redis.url, { logger: { info: write, warn: write, error: write } }),
            logger: { info: write, warn: write, error: write },
          }),
          (one) => one.close({ graceMs: 1_000 }),
        );
        let fails = true;
        const done = new Set<string>();
        receiver
          .onDeposit(
            async ({ payTxnId }) => {
              await pause(5);
              if (fails) throw new Error("not yet");
              done.add(payTxnId);
            },
            { maxAttempts: 1_000, backoffMs: () => 200 },
          )
          .ignore("WITHDRAWAL")
          .observe((notice) => notices.push(notice));
        await receiver.start();
        const send = (): Promise<number> => {
          const { delivery } = testEvent(keys.privateKey);
          const headers = { get: (name: string) => delivery.headers[name] ?? null };
          const { rawBody } = delivery;
          return receiver.payments
            .receive({ method: "POST", url: "/", headers, rawBody })
            .then(({ status }) => status);
        };
        for (let sent = 0; sent < EVENTS; sent += AT_ONCE) {
          expect(await Promise.all(Array.from({ length: AT_ONCE }, send))).toEqual(Array(AT_ONCE).fill(200));
        }
        await until(
          "all have been tried",
          () => notices.filter(({ type }) => type === "retry").length > EVENTS,
        );
        const commands = async (): Promise<number> => Number(await redis.info("total_commands_processed"));
        await redis.tell("CONFIG", "SET", setting, 1);
        const [noticesBefore, linesBefore, commandsBefore] = [notices.length, lines.length, await commands()];
        const answers: Promise<number>[] = [];
        for (let sent = 0; sent < SENT; sent++) {
          answers.push(send());
          await pause(FAULT_MS / SENT);
        }
        const during = notices.slice(noticesBefore);
        const asked = (await commands()) - commandsBefore;
        const written = lines.length - linesBefore;
        const refused = during.filter(({ type }) => type === "refused").length;
        // A delivery that is refused is told by itself; of the store's errors equal ones are told together.
        const ofTheStore = during.filter(({ type }) => type === "inbox-error").length;
        const attempts = during.filter(({ type }) => type === "started").length;
        const note = `${written} lines, ${ofTheStore} notices of the store, ${asked} commands, ${attempts} attempts`;
        console.log(`Redis refuses (${setting} 1): ${note}, ${refused} deliveries refused`);
        // One line for each thing that fails, however often it does. A slow machine has more things that fail.
        const messages = lines.slice(linesBefore);
        expect(messages).toEqual([...new Set(messages)]);
        expect(written, messages.join("\n")).toBeLessThanOrEqual(8);
        expect(ofTheStore).toBeLessThanOrEqual(4);
        expect(refused).toBeLessThanOrEqual(SENT);
        expect(asked).toBeLessThan(SENT * COMMANDS_PER_DELIVERY + attempts * COMMANDS_PER_ATTEMPT);
        expect(attempts > EVENTS).toBe(goesOn);
        await redis.tell("CONFIG", "SET", setting, 0);
        fails = false;
        await Promise.all(answers);
        await until("all are done", () => done.size >= EVENTS, { withinMs: 30_000 });
      }),
  );
});
