/** Effects that happen exactly once, whatever the client is. test/effects has the same on real databases. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { EffectContext } from "../../src/effects/index.ts";
import { transact } from "../../src/effects/transaction.ts";
import type { Receiver } from "../../src/index.ts";
import { createHarness, createTestKeys, type Harness } from "../../src/testing/index.ts";
import { type Environment, environmentOf, tokenMaker } from "../../src/time/environment.ts";
import { MapDatabase, type MapTransaction } from "./map-database.ts";

const keys = createTestKeys();
const DAY_MS = 86_400_000;

type Context = EffectContext<MapTransaction>;
type Register = (receiver: Receiver<Context>) => unknown;

const harnessOn = (database: MapDatabase, register: Register, options = {}): Promise<Harness> =>
  createHarness({ register, keys, receiver: { effects: database.effects(options) } });

const book = async (tx: MapTransaction): Promise<string> => {
  tx.add("cash", 10);
  return "booked";
};

const errorsOf = ({ notices }: Harness): readonly string[] =>
  notices.flatMap((notice) => (notice.type === "retry" || notice.type === "given-up" ? [notice.error] : []));

const skippedIn = ({ notices }: Harness): readonly string[] =>
  notices.flatMap((notice) => (notice.type === "effect-skipped" ? [notice.effect] : []));

describe("ctx.transaction", () => {
  it("has the effect once, although the handler runs again after a death right after its commit", async () => {
    const database = new MapDatabase();
    const results: unknown[] = [];
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(async (_, ctx) => results.push(await ctx.transaction(book))),
    );
    const delivery = await t.deposit();
    await t.redeliver(delivery);
    expect(await t.crashAfter("deposit", delivery)).toMatchObject({ outcome: "done", ran: ["deposit"] });
    expect(results).toEqual([
      { ran: true, value: "booked" },
      { ran: false, value: undefined },
    ]);
    expect(database.accounts.get("cash")).toBe(10);
    expect([...database.ids.keys()]).toEqual([`${delivery.eventId}.deposit`]);
    expect(skippedIn(t)).toEqual([`${delivery.eventId}.deposit`]);
  });

  it("leaves nothing of an attempt that throws, so that the next one has the effect", async () => {
    const database = new MapDatabase();
    let attempts = 0;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await book(tx);
          if (++attempts === 1) throw new Error("no stock");
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(database.ids.size).toBe(0);
    expect(await t.advance("1m")).toEqual(["deposit"]);
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("does not commit after a swallowed statement error: the commit would be a rollback", async () => {
    const database = new MapDatabase();
    let attempts = 0;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await book(tx);
          if (++attempts === 1) tx.fail();
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([expect.stringContaining("was aborted, before it could be committed")]);
    await t.advance("1m");
    expect(database.accounts.get("cash")).toBe(10);
  });

  const NOT_TODAY = new Error("closed on Sundays");

  it.each([
    ["commits, and returns", (tx: MapTransaction) => tx.commit()],
    [
      "commits, and throws",
      (tx: MapTransaction) => {
        tx.commit();
        throw NOT_TODAY;
      },
    ],
    ["rolls back, and returns", (tx: MapTransaction) => tx.rollBack()],
    [
      "rolls back, and throws",
      (tx: MapTransaction) => {
        tx.rollBack();
        throw NOT_TODAY;
      },
    ],
  ])("holds the event, and calls nothing again, if the function %s", async (_, end) => {
    const database = new MapDatabase();
    let calls = 0;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          calls++;
          end(tx);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "held" });
    expect(await t.held()).toMatchObject([
      { reason: "rejected", detail: expect.stringContaining("has committed or rolled back the transaction") },
    ]);
    await t.advance("2h");
    expect(calls).toBe(1);
  });

  it.each([
    ["caught the error", (run: Promise<unknown>) => run.catch(() => {})],
    [
      "threw an error of its own",
      (run: Promise<unknown>) =>
        run.catch(() => {
          throw NOT_TODAY;
        }),
    ],
  ])("holds it even if the handler %s", async (_, treat) => {
    const t = await harnessOn(new MapDatabase(), (receiver) =>
      receiver.onDeposit((_, ctx) => treat(ctx.transaction((tx) => tx.commit()))),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "held" });
    expect(await t.held()).toMatchObject([{ reason: "rejected" }]);
  });

  it("finds in a later run that code inside has committed, if its own run could not say so", async () => {
    const database = new MapDatabase();
    let calls = 0;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction((tx) => {
            calls++;
            tx.commit();
            return new Promise<void>(() => {});
          }),
        { timeoutMs: 1_000 },
      ),
    );
    const delivering = t.deposit();
    await expect.poll(() => calls).toBe(1);
    await t.clock.advance(1_001);
    expect(await delivering).toMatchObject({ outcome: "retrying" });
    await t.advance("1m");
    expect(await t.held()).toMatchObject([{ reason: "rejected" }]);
    expect(calls).toBe(1);
    expect(skippedIn(t)).toEqual([]);
  });

  it("runs it again if a person says so: again gives it a new id", async () => {
    const database = new MapDatabase();
    let isFirst = true;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          if (isFirst) tx.commit();
          isFirst = false;
          await book(tx);
        }),
      ),
    );
    const eventId = (await t.deposit()).eventId ?? "";
    const decision = { by: "amina", note: "nothing of it is there", handlers: ["deposit"] };
    await t.receiver.events.replay(eventId, decision);
    await t.advance("1s");
    expect(await t.held()).toHaveLength(1);
    await t.receiver.events.replay(eventId, { ...decision, repeatEffects: true });
    await t.advance("1s");
    expect(await t.held()).toEqual([]);
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("waits for a database that accepts no writes, which uses up no attempt, and says why", async () => {
    const database = new MapDatabase();
    const tries = 40;
    database.refusals.push(...Array.from({ length: tries }, () => new Error("read-only")));
    let calls = 0;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(
        (_, ctx) => {
          calls++;
          return ctx.transaction(book);
        },
        { maxAttempts: 1 },
      ),
    );
    const eventId = (await t.deposit()).eventId ?? "";
    const retries = () => t.notices.flatMap((notice) => (notice.type === "retry" ? [notice] : []));
    expect(retries()).toMatchObject([
      { attempt: 1, error: expect.stringContaining("that uses up no attempt") },
    ]);
    // The waits are random: forty of them take 30 minutes at most, and 18 on average.
    await t.advance("31m");
    // The first attempt of all that was one.
    expect(calls).toBe(tries + 1);
    expect(database.accounts.get("cash")).toBe(10);
    expect(Math.max(...retries().map(({ delayMs }) => delayMs))).toBeLessThanOrEqual(45_000);
    const life = await t.receiver.events.get(eventId);
    expect(life?.state).toBe("done");
    expect(life?.history.filter(({ what }) => what === "failed")).toEqual([]);
  });

  it("counts a failure of the database once the function was called", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction(() => {
            throw new Error("read-only");
          }),
        { maxAttempts: 1 },
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "held" });
    expect(await t.held()).toMatchObject([{ reason: "exhausted" }]);
  });

  it("says so if an effect is there although the inbox knows of no earlier run", async () => {
    const database = new MapDatabase();
    const register: Register = (receiver) => receiver.onDeposit((_, ctx) => ctx.transaction(book));
    const [one, other] = [await harnessOn(database, register), await harnessOn(database, register)];
    const delivery = await one.deposit();
    await one.crashAfter("deposit", delivery);
    await other.deliver("payments", delivery.sent);
    const unexpected = (t: Harness): readonly boolean[] =>
      t.notices.flatMap((notice) => (notice.type === "effect-skipped" ? [notice.unexpected] : []));
    expect(unexpected(one)).toEqual([false]);
    expect(unexpected(other)).toEqual([true]);
  });

  it("refuses a second effect without a name, and has both where it has one", async () => {
    const database = new MapDatabase();
    let name: string | null = null;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        await ctx.transaction(book);
        await (name === null ? ctx.transaction(book) : ctx.transaction(name, book));
      }),
    );
    const { eventId } = await t.deposit();
    expect(errorsOf(t)).toEqual([expect.stringContaining("used one effect twice")]);
    name = "fees";
    await t.advance("1m");
    expect(database.accounts.get("cash")).toBe(20);
    expect([...database.ids.keys()]).toEqual([`${eventId}.deposit`, `${eventId}.deposit/fees`]);
  });

  it("may be tried again in the same run after a rollback", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        const failing = ctx.transaction(() => {
          throw new Error("closed on Sundays");
        });
        await failing.catch(() => {});
        await ctx.transaction(book);
      }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("refuses a claim of the effect that its transaction is of, holds nothing, and takes one with a name", async () => {
    const database = new MapDatabase();
    let claimed: unknown[] = [];
    let name: string | undefined;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          claimed = [await ctx.claimEffect(tx, name)];
          await book(tx);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([expect.stringContaining("used one effect twice")]);
    expect(database.ids.size).toBe(0);
    name = "points";
    expect(await t.advance("1m")).toEqual(["deposit"]);
    expect(claimed).toEqual([true]);
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("refuses a nested call, and one beside another", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver
        .onDeposit((_, ctx) => ctx.transaction(() => ctx.transaction("inner", book)))
        .onWithdrawal((_, ctx) => Promise.all([ctx.transaction("a", book), ctx.transaction("b", book)])),
    );
    await t.deposit();
    await t.withdrawal();
    expect(errorsOf(t)).toEqual(
      Array(2).fill(expect.stringContaining("while an earlier call was still running")),
    );
  });

  it("fails the handler that did not wait for it", async () => {
    const database = new MapDatabase();
    let isOpen = false;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) => {
        void ctx
          .transaction(async (tx) => {
            await new Promise((resolve) => setImmediate(resolve));
            await book(tx);
            if (!isOpen) throw new Error("closed on Sundays");
          })
          .catch(() => {});
      }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    isOpen = true;
    await t.advance("1m");
    expect(database.accounts.get("cash")).toBe(10);
  });

  it.each([
    ["while it runs", async () => {}],
    ["before the handler ends", () => new Promise((resolve) => setImmediate(resolve))],
  ])("fails the handler that has forgotten it, and not the process, if it fails %s", async (_, rest) => {
    const database = new MapDatabase();
    const unhandled: unknown[] = [];
    const keep = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", keep);
    onTestFinished(() => void process.off("unhandledRejection", keep));
    const t = await harnessOn(database, (receiver) =>
      receiver
        .onDeposit(async (_, ctx) => {
          void ctx.transaction(() => {
            throw new Error("closed on Sundays");
          });
          await rest();
        })
        .onWithdrawal(async (_, ctx) => {
          void ctx.transaction("no function" as never);
          await rest();
        }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(await t.withdrawal()).toMatchObject({ outcome: "retrying" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(errorsOf(t)).toEqual([
      "Error: closed on Sundays",
      expect.stringContaining("ctx.transaction was given no function"),
    ]);
    expect(unhandled).toEqual([]);
  });

  it("lets a handler go on that catches what a transaction throws", async () => {
    const t = await harnessOn(new MapDatabase(), (receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        const failing = (): never => {
          throw new Error("closed on Sundays");
        };
        await ctx.transaction("first", failing).catch(() => {});
        try {
          await ctx.transaction("second", failing);
        } catch {}
        await Promise.allSettled([ctx.transaction("third", failing)]);
      }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
  });

  it("gives a transaction that throws once it has ended", async () => {
    const database = new MapDatabase();
    let kept: MapTransaction | null = null;
    let add: ((account: string, amount: number) => void) | null = null;
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          kept = tx;
          add = tx.add;
        }),
      ),
    );
    await t.deposit();
    const code = { code: "ERR_EFFECT_TRANSACTION" };
    expect(() => kept?.add("cash", 1)).toThrow(expect.objectContaining(code));
    expect(() => add?.("cash", 1)).toThrow(expect.objectContaining(code));
  });

  it("repeats what the database wants repeated, and counts it as no attempt", async () => {
    const database = new MapDatabase();
    database.failures.push(new Error("deadlock"), new Error("deadlock"));
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction(book), { maxAttempts: 1 }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(database).toMatchObject({ begun: 3, rolledBack: 2 });
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("waits before each repeat as long as the environment's tokens say, twice as long each time", async () => {
    const waitsOf = async (): Promise<readonly number[]> => {
      const database = new MapDatabase();
      database.failures.push(...Array.from({ length: 4 }, () => new Error("deadlock")));
      const waits: number[] = [];
      const environment: Environment = {
        ...environmentOf(),
        token: tokenMaker("same-"),
        after: (ms, callback) => {
          if (ms > 0 && ms < 1_000) waits.push(ms);
          return environmentOf().after(0, callback);
        },
      };
      const client = {
        transaction: <T>(work: (tx: MapTransaction) => Promise<T>) => database.transaction(work),
        insert: async () => ({ found: "nothing" }) as const,
        finish: async () => true,
        isRepeatable: () => true,
      };
      await transact(client, "id", book, new AbortController().signal, environment);
      return waits;
    };
    const waits = await waitsOf();
    expect(waits).toHaveLength(4);
    for (const [repeats, ms] of waits.entries()) {
      expect(ms).toBeGreaterThanOrEqual(2.5 * 2 ** repeats);
      expect(ms).toBeLessThan(7.5 * 2 ** repeats);
    }
    expect(await waitsOf()).toEqual(waits);
  });

  it("rolls back when the handler's time is up, and the function can do no more", async () => {
    const database = new MapDatabase();
    let late = (): void => {};
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction(async (tx) => {
            if (ctx.attempt > 1) return void (await book(tx));
            await new Promise<void>((resolve) => {
              late = resolve;
            });
            await book(tx);
          }),
        { timeoutMs: 1_000 },
      ),
    );
    const delivering = t.deposit();
    await expect.poll(() => database.begun).toBe(1);
    await t.clock.advance(1_001);
    expect(await delivering).toMatchObject({ outcome: "retrying" });
    await expect.poll(() => database.rolledBack).toBe(1);
    late();
    await t.advance("1m");
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("waits for a commit that is under way, whatever has been aborted", async () => {
    const database = new MapDatabase();
    let commit = (): void => {};
    database.commitGate = new Promise((resolve) => {
      commit = resolve;
    });
    const results: unknown[] = [];
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(async (_, ctx) => results.push(await ctx.transaction(book)), { timeoutMs: 1_000 }),
    );
    const delivering = t.deposit();
    await expect.poll(() => database.committing).toBe(1);
    await t.clock.advance(1_001);
    await delivering;
    expect(results).toEqual([]);
    commit();
    await expect.poll(() => results).toEqual([{ ran: true, value: "booked" }]);
    await t.advance("1m");
    expect(results).toHaveLength(2);
    expect(results[1]).toEqual({ ran: false, value: undefined });
    expect(database.accounts.get("cash")).toBe(10);
  });

  it.each(["", "a/b", "ä", "x".repeat(65), 7])("refuses %j as a name", async (name) => {
    const t = await harnessOn(new MapDatabase(), (receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction(name as string, book)),
    );
    await t.deposit();
    expect(errorsOf(t)).toEqual([expect.stringContaining("An effect has the name")]);
  });
});

describe("ctx.claimEffect", () => {
  it("claims in a transaction of the merchant's own", async () => {
    const database = new MapDatabase();
    const claims: boolean[] = [];
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        database.transaction(async (tx) => {
          const isNew = await ctx.claimEffect(tx);
          claims.push(isNew);
          if (isNew) await book(tx);
        }),
      ),
    );
    const delivery = await t.deposit();
    await t.crashAfter("deposit", delivery);
    expect(claims).toEqual([true, false]);
    expect(database.accounts.get("cash")).toBe(10);
    expect(skippedIn(t)).toHaveLength(1);
  });

  it("adds a second effect to a transaction, under a name", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await book(tx);
          if (await ctx.claimEffect(tx, "fees")) tx.add("fees", 1);
        }),
      ),
    );
    await t.crashAfter("deposit", await t.deposit());
    expect(Object.fromEntries(database.accounts)).toEqual({ cash: 10, fees: 1 });
  });

  it("refuses to find what this very run has claimed: the second effect would be left out", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        database.transaction(async (tx) => {
          await ctx.claimEffect(tx);
          await ctx.claimEffect(tx);
        }),
      ),
    );
    await t.deposit();
    expect(errorsOf(t)).toEqual([expect.stringContaining("used one effect twice")]);
  });

  it("holds an event whose effect was begun, and committed without its end", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        database.transaction(async (tx) => {
          database.ids.set(ctx.effectId, "begun");
          await ctx.claimEffect(tx);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "held" });
    expect(await t.held()).toMatchObject([{ reason: "rejected" }]);
  });

  it("may be repeated after a rollback", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        for (const isLast of [false, true]) {
          const once = database.transaction(async (tx) => {
            if (!(await ctx.claimEffect(tx))) throw new Error("it was rolled back");
            await book(tx);
            if (!isLast) throw new Error("deadlock");
          });
          await (isLast ? once : once.catch(() => {}));
        }
      }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(database.accounts.get("cash")).toBe(10);
  });
});

describe("effects of two receivers on one database", () => {
  it("do not meet where each has a scope", async () => {
    const database = new MapDatabase();
    const register: Register = (receiver) => receiver.onDeposit((_, ctx) => ctx.transaction(book));
    const [shop, books] = [
      await harnessOn(database, register, { scope: "shop" }),
      await harnessOn(database, register, { scope: "books" }),
    ];
    const { sent, eventId } = await shop.deposit();
    await books.deliver("payments", sent);
    expect(database.accounts.get("cash")).toBe(20);
    expect([...database.ids.keys()]).toEqual([`shop/${eventId}.deposit`, `books/${eventId}.deposit`]);
  });

  it("refuse a scope that is none", () => {
    expect(() => new MapDatabase().effects({ scope: "a/b" })).toThrow(
      expect.objectContaining({ code: "ERR_OPTION_INVALID" }),
    );
  });
});

describe("a replay", () => {
  const decision = { by: "amina", note: "the bank was down" };

  async function heldAfterItsEffect(): Promise<{ t: Harness; database: MapDatabase; eventId: string }> {
    const database = new MapDatabase();
    let isBroken = true;
    const t = await harnessOn(database, (receiver) =>
      receiver
        .onDeposit((_, ctx) => ctx.transaction(book))
        .onDeposit(
          () => {
            if (isBroken) throw new Error("no mail today");
          },
          { name: "mail", maxAttempts: 1 },
        ),
    );
    const { eventId } = await t.deposit();
    isBroken = false;
    expect(await t.held()).toHaveLength(1);
    return { t, database, eventId: eventId ?? "" };
  }

  it("of a finished handler says that its effect is skipped", async () => {
    const { t, database, eventId } = await heldAfterItsEffect();
    await t.receiver.events.replay(eventId, { ...decision, handlers: ["deposit"] });
    await t.advance("1s");
    expect(skippedIn(t)).toEqual([`${eventId}.deposit`]);
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("has the effect once more with repeatEffects, under a new id", async () => {
    const { t, database, eventId } = await heldAfterItsEffect();
    await t.receiver.events.replay(eventId, { ...decision, handlers: ["deposit"], repeatEffects: true });
    await t.advance("1s");
    expect(skippedIn(t)).toEqual([]);
    expect(database.accounts.get("cash")).toBe(20);
    expect([...database.ids.keys()]).toEqual([`${eventId}.deposit`, `${eventId}.deposit~1`]);
  });

  it("with again wants the handlers named", async () => {
    const { t, eventId } = await heldAfterItsEffect();
    await expect(
      t.receiver.events.replay(eventId, { ...decision, repeatEffects: true }),
    ).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
    });
  });

  it("on day 60 still finds the effect", async () => {
    const { t, database, eventId } = await heldAfterItsEffect();
    await t.clock.advance(60 * DAY_MS);
    await t.receiver.events.replay(eventId, { ...decision, handlers: ["deposit", "mail"] });
    await t.advance("1s");
    expect((await t.receiver.events.get(eventId))?.state).toBe("done");
    expect(database.accounts.get("cash")).toBe(10);
  });

  it("of an event older than keepMs is refused, unless a person asks for it explicitly", async () => {
    const { t, database, eventId } = await heldAfterItsEffect();
    await t.clock.advance(401 * DAY_MS);
    database.ids.clear();
    await t.receiver.events.replay(eventId, { ...decision, handlers: ["deposit"] });
    await t.advance("1s");
    const [entry] = await t.held();
    expect(entry).toMatchObject({ reason: "rejected", detail: expect.stringContaining("400 days") });
    expect(database.accounts.get("cash")).toBe(10);
    await t.receiver.events.replay(eventId, { ...decision, handlers: ["deposit"], evenIfExpired: true });
    await t.advance("1s");
    expect(await t.held()).toEqual([]);
    expect(database.accounts.get("cash")).toBe(20);
  });
});

describe("onHeld handlers", () => {
  it("have an effect of their own each time that an event is held", async () => {
    const database = new MapDatabase();
    const t = await harnessOn(database, (receiver) =>
      receiver
        .onDeposit(
          () => {
            throw new Error("never");
          },
          { maxAttempts: 1 },
        )
        .onHeld((_, ctx) => ctx.transaction((tx) => tx.add("tickets", 1))),
    );
    const { eventId } = await t.deposit();
    await t.receiver.events.replay(eventId ?? "", { by: "amina", note: "again" });
    await t.advance("1m");
    expect(database.accounts.get("tickets")).toBe(2);
  });
});

describe("a receiver without effects", () => {
  it("has no ctx.transaction by type, and says so at run time", async () => {
    const t = await createHarness({
      keys,
      register: (receiver) => {
        receiver.onDeposit(async (_, ctx) => {
          // @ts-expect-error There is no option effects.
          await ctx.transaction(async () => {});
        });
        receiver.onWithdrawal(async (_, ctx) => {
          // @ts-expect-error There is no option effects.
          await ctx.claimEffect({});
        });
      },
    });
    await t.deposit();
    await t.withdrawal();
    expect(errorsOf(t)).toEqual([
      expect.stringContaining("ctx.transaction was called, but the receiver has no effects"),
      expect.stringContaining("ctx.claimEffect was called, but the receiver has no effects"),
    ]);
  });

  it("is not taken for one with effects", async () => {
    const payOrders = (receiver: Receiver<Context>): unknown => receiver;
    const register = (receiver: Receiver): unknown =>
      // @ts-expect-error Its handlers would call what is not there.
      payOrders(receiver);
    const t = await createHarness({ keys, register: (receiver) => receiver.onDeposit(() => {}) });
    expect(register(t.receiver)).toBe(t.receiver);
    expect(t.receiver.effects).toBeNull();
  });
});
