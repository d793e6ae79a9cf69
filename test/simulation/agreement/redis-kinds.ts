/**
 * Redis on a real server, whose scripts get the history's time. Code before each script answers `TIME`, and deletes the records
 * that have expired by that time. The server itself would not delete them, because its own clock is decades behind.
 */
import { createHash } from "node:crypto";
import type { Redis } from "ioredis";
import { redisStore } from "../../../packages/core/src/redis/store.ts";
import { silent } from "../../support/silent.ts";
import { type Dataset, handMovedClock, type Kind } from "./world.ts";

const TIMED = `
local given = redis
local ms = tonumber(given.call('GET', string.match(KEYS[1], '^[^{]*') .. 'time'))
local function call(command, ...)
  if command == 'TIME' then return {math.floor(ms / 1000), ms % 1000 * 1000} end
  return given.call(command, ...)
end
local redis = setmetatable({call = call}, {__index = given})
for _, key in ipairs(KEYS) do
  if string.match(key, ':%x+$') then
    local expiry = given.call('PEXPIRETIME', key)
    if expiry >= 0 and expiry <= ms then given.call('DEL', key) end
  end
end
`;

/** Changes a script, to prove that the histories find a mistake. */
export type ScriptChange = (script: string) => string;

const unchanged: ScriptChange = (script) => script;
/** Long, because a slow answer of a busy machine is no difference. */
const COMMAND_TIMEOUT_MS = 10_000;

/** Characters. */
const MAX_LENGTH = 1_000_000;

let datasets = 0;

function newDataset(server: Redis, target: Parameters<typeof redisStore>[0], replicas: number): Dataset {
  const prefix = `agreement-${process.pid}-${++datasets}`;
  const { clock, setTime } = handMovedClock();
  const options = { prefix, replicas, clock, logger: silent, commandTimeoutMs: COMMAND_TIMEOUT_MS };
  return {
    connect: () => redisStore(target, options),
    async setTime(now) {
      setTime(now);
      await server.set(`${prefix}:time`, now);
    },
    async close() {
      const keys = await server.keys(`${prefix}:*`);
      if (keys.length > 0) await server.unlink(keys);
    },
  };
}

/** With ioredis, and as many replicas as the server has. */
export function redisKind(server: Redis, replicas: number, change: ScriptChange = unchanged): Kind {
  const timed = timedConnection(server.duplicate({ lazyConnect: true }), change);
  return {
    name: "Redis",
    listsFinished: false,
    distrustsClock: false,
    make: () => newDataset(server, timed, replicas),
  };
}

/** With a client that only runs scripts of limited length, like services that take commands over HTTP. */
export function scriptedRedisKind(server: Redis, change: ScriptChange = unchanged): Kind {
  const client = {
    async eval(script: string, keys: string[], args: string[]): Promise<unknown> {
      if (args.some((arg) => arg.length > MAX_LENGTH)) throw new Error("ERR max request size exceeded");
      return server.eval(TIMED + change(script), keys.length, ...keys, ...args);
    },
  };
  return {
    name: "Redis with a client that runs scripts",
    listsFinished: false,
    distrustsClock: false,
    make: () => newDataset(server, client, 0),
  };
}

/** The same on a cluster: no script may use two shards, so each shard is polled separately. */
export function shardedRedisKind(server: Redis): Kind {
  const client = {
    async eval(script: string, keys: string[], args: string[]): Promise<unknown> {
      const tags = new Set(keys.map((key) => /\{.*?\}/.exec(key)?.[0]));
      if (tags.size > 1) throw new Error("CROSSSLOT Keys in request don't hash to the same slot");
      return server.eval(TIMED + script, keys.length, ...keys, ...args);
    },
  };
  return {
    name: "Redis with separate shards",
    listsFinished: false,
    distrustsClock: false,
    takesPerShard: true,
    make: () => newDataset(server, client, 0),
  };
}

/** A connection whose scripts get the history's time, as do those of its copies. */
function timedConnection(connection: Redis, change: ScriptChange): Redis {
  const timedHashes = new Map<string, string>();
  const run = {
    eval: connection.eval.bind(connection) as (...args: readonly unknown[]) => Promise<unknown>,
    evalsha: connection.evalsha.bind(connection) as (...args: readonly unknown[]) => Promise<unknown>,
    duplicate: connection.duplicate.bind(connection) as (...args: readonly unknown[]) => Redis,
  };
  connection.on("error", () => {});
  const own = {
    async eval(script: string, ...rest: readonly unknown[]): Promise<unknown> {
      const timed = TIMED + change(script);
      timedHashes.set(hashOf(script), hashOf(timed));
      return run.eval(timed, ...rest);
    },
    async evalsha(hash: string, ...rest: readonly unknown[]): Promise<unknown> {
      const timed = timedHashes.get(hash);
      if (timed === undefined) throw new Error("NOSCRIPT");
      return run.evalsha(timed, ...rest);
    },
    duplicate: (...args: readonly unknown[]) => timedConnection(run.duplicate(...args), change),
  };
  for (const [name, value] of Object.entries(own)) Object.defineProperty(connection, name, { value });
  return connection;
}

function hashOf(script: string): string {
  return createHash("sha1").update(script).digest("hex");
}
