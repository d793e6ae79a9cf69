/** kill -9 of the process that receives and runs: the same cases for every inbox that survives it. */
import { expect, it } from "vitest";
import type { ChildConfig, InboxConfig } from "./child-config.ts";
import { type Manner, type TestEvent, testEvent } from "./events.ts";
import { type KillPoint, MAY_RUN_TWICE, RUNS_TWICE } from "./kill-points.ts";
import { ProcessUnderTest } from "./processes.ts";
import { isLong, report } from "./report.ts";
import { newSeed, pause, type Scope, seededRandom, until, withScope } from "./scope.ts";
import { Sender } from "./sender.ts";
import { keys, SOUND, System } from "./system.ts";

/** The inbox of the processes that are killed. */
export interface KillFixture {
  readonly name: string;
  /**
   * Events that may run twice, per kill under load: those whose handler had ended, but whose end was not stored yet. The
   * handlers that run at one time (16), times how long it takes to store an end, over how long a handler takes (200 ms).
   */
  readonly doublesPerKill: number;
  readonly inboxAt: (scope: Scope) => Promise<InboxConfig>;
}

/** A few kills say little about a rare event. Their bound is the mean plus three standard deviations. */
function doublesAllowed(kills: number, perKill: number): number {
  const bound = perKill * kills;
  return kills < 100 ? bound + 3 * Math.sqrt(bound) : bound;
}

/** How many of the notices may be about a handler that was not called. Beside other tests, writes take longer than handlers. */
const FALSE_NOTICES = isLong ? 1 / 4 : 1 / 2;

/** kill -9 of the process that receives and runs, under load. */
export function killUnderLoad({ name, inboxAt, doublesPerKill }: KillFixture, kills: number): void {
  it(`loses nothing in ${kills} kills`, { timeout: 150_000 + kills * 6_000 }, () =>
    withScope(async (scope) => {
      const seed = newSeed("kill under load");
      const random = seededRandom(seed);
      const system = System.create(scope, await inboxAt(scope), seed);
      const config = await system.config({ handlerMs: 400, throwRate: 0.02 });
      const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
      let over = false;
      const sending = sender.run(() => testEvent(keys.privateKey), {
        isOver: () => over,
        perSecond: 100,
        withinMs: Number.POSITIVE_INFINITY,
      });
      scope.add(null, () => {
        over = true;
        return sending;
      });
      for (let kill = 0; kill < kills; kill++) {
        const one = await ProcessUnderTest.start(scope, config);
        const enough = sender.acknowledged.size + 44;
        await until("the process acknowledges", () => sender.acknowledged.size >= enough);
        await pause(random() * 100);
        await one.kill();
      }
      over = true;
      await sending;
      await ProcessUnderTest.start(scope, config);
      // Of each kill, about ten events are left that have died twice. These run one at a time, about five a second.
      const verdict = await system.judge(sender, { withinMs: 90_000 + kills * 4_000 });
      const { notices, falseOnes } = system.diedWhileRunning();
      const note = `of ${notices} double-risk notices ${falseOnes} for a handler that was not called`;
      report(`${name}: kill -9 under load × ${kills}`, verdict, sender, note);
      expect(verdict).toMatchObject(SOUND);
      expect(verdict.acknowledged).toBeGreaterThanOrEqual(kills * 40);
      expect(verdict.doubles.length).toBeLessThanOrEqual(doublesAllowed(kills, doublesPerKill));
      expect(notices).toBeGreaterThan(kills);
      expect(falseOnes, note).toBeLessThan(notices * FALSE_NOTICES);
    }),
  );
}

/** With kills at points, about 2 handlers run at one time, and each takes about 10 ms. */
const AT_POINTS_PER_UNDER_LOAD = ((2 / 10) * 200) / 16;

const MANNERS: readonly Manner[] = ["calm", "throws", "calm", "slow", "rejects", "calm"];

/** To be begun as it is accepted, an event needs a free place. So there are many then, and events come slowly. */
function needsFreePlace(point: KillPoint): boolean {
  return point === "before accept and begin" || point === "after accept and begin";
}

/** The configuration without which a process never comes to a point. */
function configFor(point: KillPoint): Partial<ChildConfig> {
  if (needsFreePlace(point)) return { concurrency: 32 };
  switch (point) {
    case "before accept":
    case "after accept":
      return { run: "elsewhere" };
    case "before start":
    case "after start":
      return { onCrash: "hold" };
    case "before end and start":
    case "after end and start":
      return { twoHandlers: true };
    case "before replay":
    case "after replay":
      return { decision: "replay" };
    case "before discard":
    case "after discard":
      return { decision: "discard" };
    default:
      return {};
  }
}

/** kill -9 right before and right after each write of docs/concepts/durability.md. */
export function killAtPoints(
  { name, inboxAt, doublesPerKill }: KillFixture,
  points: readonly KillPoint[],
  times: number,
): void {
  it(
    `loses nothing in ${times} kills at each of ${points.length} points`,
    {
      timeout: 60_000 + times * points.length * 6_000,
    },
    () =>
      withScope(async (scope) => {
        const seed = newSeed("kill at a point");
        const random = seededRandom(seed);
        const system = System.create(scope, await inboxAt(scope), seed);
        const config = await system.config({ concurrency: 4 });
        const sender = scope.add(new Sender({ ports: [config.port], lanes: 4 }), (one) => one.close());
        const rounds = points.flatMap((point) => Array.from({ length: times }, () => point));
        for (const point of rounds) {
          const killAt = { point, nth: 1 + Math.floor(random() * 4) };
          const one = await ProcessUnderTest.start(scope, { ...config, ...configFor(point), killAt });
          let at = 0;
          const next = (): TestEvent =>
            testEvent(keys.privateKey, { manner: MANNERS[at++ % MANNERS.length] ?? "calm" });
          // The delivery on which it was killed is not given up: the next process gets it, under the same key.
          const unfinished: TestEvent[] = [];
          await sender.run(
            () => {
              const event = next();
              unfinished.push(event);
              return event;
            },
            {
              isOver: () => one.exit !== null,
              perSecond: needsFreePlace(point) ? 20 : 200,
              withinMs: 30_000,
            },
          );
          expect(one.exit, `the process is killed ${point}`).toMatchObject({ signal: "SIGKILL" });
          const again = await ProcessUnderTest.start(scope, config);
          await sender.sendAll(unfinished.filter(({ key }) => !sender.acknowledged.has(key)));
          expect(await again.terminate()).toMatchObject({ code: 0 });
        }
        await ProcessUnderTest.start(scope, config);
        // Events that have died several times run one at a time, about twenty a second, and each kill leaves about ten of them.
        const verdict = await system.judge(sender, { withinMs: 90_000 + rounds.length * 1_000 });
        report(`${name}: kill -9 before and after each write × ${rounds.length}`, verdict, sender);
        expect(verdict.lost).toEqual([]);
        expect(verdict.silentDoubles).toEqual([]);
        const killed = system.lines("killed");
        expect(killed).toHaveLength(rounds.length);
        const completedFirst = new Map<string, number>();
        for (const { key, pid } of [...system.lines("completed")].reverse()) completedFirst.set(key, pid);
        // Those that the process died on, and had completed itself. One that it only took over ran twice for an earlier kill.
        const twice = killed.filter(
          ({ key, pid }) => verdict.doubles.includes(key) && completedFirst.get(key) === pid,
        );
        expect(twice.filter(({ detail }) => !MAY_RUN_TWICE.includes(detail as KillPoint))).toEqual([]);
        if (points.some((point) => RUNS_TWICE.includes(point))) expect(twice.length).toBeGreaterThan(0);
        // Of those that ran beside them some had just ended.
        expect(verdict.doubles.length - twice.length).toBeLessThanOrEqual(
          doublesAllowed(rounds.length, doublesPerKill * AT_POINTS_PER_UNDER_LOAD),
        );
      }),
  );
}
