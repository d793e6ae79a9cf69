/** An outage of ten minutes, and what people are told of it by three processes. Real processes, and a database that is killed. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import type { InboxConfig } from "./child-config.ts";
import { ProcessUnderTest } from "./processes.ts";
import { isLong } from "./report.ts";
import { pause, type Scope, sharedNow, until, withScope } from "./scope.ts";
import { System } from "./system.ts";

/** A database that can be killed, and started again on what it has kept. */
interface Server {
  readonly inbox: InboxConfig;
  kill(): Promise<void>;
  up(): Promise<void>;
}

const MINUTE_MS = 60_000;
/** In the short form, the clock of alerts runs ten times as fast: a minute takes six seconds. */
const SPEED = isLong ? 1 : 10;
const minutes = (count: number): number => (count * MINUTE_MS) / SPEED;

/** A channel, and the texts that came to it, with real times. */
interface Channel {
  readonly url: string;
  readonly got: { readonly text: string; readonly at: number }[];
}

async function channelIn(scope: Scope): Promise<Channel> {
  const got: Channel["got"] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request)) as { readonly text: string };
    got.push({ text: body.text, at: sharedNow() });
    response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  scope.add(server, (one) => one.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, got };
}

export const OUTAGE_MS: number = minutes(10);

/** Plays the outage. Expects one message after it has begun, one after it is over, and no other. */
export function alertsOfAnOutage(start: (scope: Scope) => Promise<Server>): Promise<void> {
  return withScope(async (scope) => {
    const server = await start(scope);
    const channel = await channelIn(scope);
    const system = System.create(scope, server.inbox, 1);
    const alerts = { url: channel.url, speed: SPEED, since: Date.now() };
    const config = async () => system.config({ alerts, leaseMs: 5_000 });
    await Promise.all([1, 2, 3].map(async () => ProcessUnderTest.start(scope, await config())));
    await pause(minutes(2));
    expect(channel.got).toEqual([]);

    const from = sharedNow();
    await server.kill();
    await pause(from + OUTAGE_MS - sharedNow());
    expect(channel.got.map((one) => one.text)).toEqual([
      expect.stringMatching(/^🔴 \*the test\*, began: Nothing may get through: /),
    ]);
    // It takes real time until a process notices, whatever the clock of alerts says.
    expect((channel.got[0]?.at ?? 0) - from).toBeLessThan(minutes(0.5) + 20_000);

    await server.up();
    await until("somebody is told that it is over", () => channel.got.length > 1, {
      withinMs: minutes(3) + 45_000,
    });
    await pause(minutes(5));
    expect(channel.got.map((one) => one.text.slice(0, 2))).toEqual(["🔴", "🟢"]);
  });
}
