/** Handlers book into a ledger while processes and servers die. Then the ledger is compared with the events that were sent. */
import { expect } from "vitest";
import type { ChildConfig, InboxConfig } from "./child-config.ts";
import { type Balance, balanceOf } from "./ledger.ts";
import { Traffic } from "./ledger-traffic.ts";
import { ProcessUnderTest } from "./processes.ts";
import { report } from "./report.ts";
import { type Scope, seededRandom, until } from "./scope.ts";
import { Sender } from "./sender.ts";
import { System } from "./system.ts";

/** The processes that book into the ledger, and the faults that they meet while deliveries arrive. */
export interface Play {
  readonly name: string;
  /** The address of the ledger. */
  readonly url: string;
  readonly inbox: InboxConfig;
  readonly seed: number;
  readonly overrides?: Partial<ChildConfig>;
  readonly ports?: number;
  readonly hangs?: number;
  readonly isExactlyOnce?: boolean;
  readonly faults: (stage: Stage) => Promise<void>;
}

export interface Stage {
  readonly scope: Scope;
  readonly configs: readonly ChildConfig[];
  readonly sender: Sender;
  readonly random: () => number;
}

export async function play(
  scope: Scope,
  { name, url, inbox, seed, overrides = {}, ports = 1, hangs = 0, isExactlyOnce = true, faults }: Play,
): Promise<Balance> {
  const system = System.create(scope, inbox, seed);
  const configs: ChildConfig[] = [];
  for (let at = 0; at < ports; at++) {
    configs.push(await system.config({ handlerMs: 60, ledger: { url, isExactlyOnce }, ...overrides }));
  }
  const sender = scope.add(new Sender({ ports: configs.map(({ port }) => port) }), (one) => one.close());
  const traffic = new Traffic(seed, hangs);
  let over = false;
  const sending = sender.run(() => traffic.next(), {
    isOver: () => over,
    perSecond: 60,
    withinMs: Number.POSITIVE_INFINITY,
  });
  scope.add(null, () => {
    over = true;
    return sending;
  });
  await faults({ scope, configs, sender, random: seededRandom(seed + 1) });
  over = true;
  await sending;
  const [last] = configs;
  if (last === undefined) throw new Error("there is no process");
  await ProcessUnderTest.start(scope, last);
  // A process may book an event and die before it answers. Then the service sends the event until it is acknowledged.
  const sent = [...traffic.events.values()].filter(
    ({ key }) => traffic.bookings.has(key) && !sender.acknowledged.has(key),
  );
  for (const event of sent)
    await until("it is acknowledged", async () => (await sender.attempt(event, last.port)).status === 200);
  const acknowledged = new Map([...sender.acknowledged].filter(([key]) => traffic.bookings.has(key)));
  const verdict = await system.judge({ acknowledged }, { withinMs: 300_000 });
  const balance = await balanceOf(url, [...traffic.bookings.values()]);
  report(
    name,
    { ...verdict, lost: balance.lost, doubles: balance.doubles },
    sender,
    `ledger ${balance.sum} cents, expected ${balance.expected}; handlers that ran twice: ${verdict.doubles.length}`,
  );
  expect(verdict.lost).toEqual([]);
  expect(verdict.held).toBe(0);
  expect(acknowledged.size).toBe(traffic.bookings.size);
  return balance;
}

export function expectBalanced({ lost, doubles, sum, expected }: Balance): void {
  expect({ lost, doubles }).toEqual({ lost: [], doubles: [] });
  expect(sum).toBe(expected);
}
