/**
 * Redis, on a real server, whose scripts get the history's time. A line before each script answers `TIME`, and takes away
 * the records that have expired by that time, as Redis does when they are asked for: for the server itself they lie
 * decades ahead. All else is the server's.
 */
import { createHash } from "node:crypto";
import type { Redis } from "ioredis";
import { redisStore } from "../../../packages/core/src/redis/store.ts";
import { silent } from "../../support/silent.ts";
import { handMovedClock, type Kind, type Place } from "./world.ts";

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

/** Changes a script, to prove that it would be noticed. */
export type ScriptChange = (script: string) => string;

const asItIs: ScriptChange = (script) => script;
/** A slow answer of a busy machine is no difference. */
const COMMAND_TIMEOUT_MS = 10_000;

/** Characters. */
const MAX_LENGTH = 1_000_000;

let places = 0;

function place(server: Redis, target: Parameters<typeof redisStore>[0], replicas: number): Place {
  const prefix = `agreement-${process.pid}-${++places}`;
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

/** By ioredis, with as many replicas as the server has. */
export function redisKind(server: Redis, replicas: number, change: ScriptChange = asItIs): Kind {
  const timed = timedConnection(server.duplicate({ lazyConnect: true }), change);
  return {
    name: "Redis",
    listsFinished: false,
    distrustsClock: false,
    make: () => place(server, timed, replicas),
  };
}

/** By a client that can do no more than run scripts, and no long ones, as the services that take them over HTTP. */
export function scriptedRedisKind(server: Redis, change: ScriptChange = asItIs): Kind {
  const client = {
    async eval(script: string, keys: string[], args: string[]): Promise<unknown> {
      if (args.some((arg) => arg.length > MAX_LENGTH)) throw new Error("ERR max request size exceeded");
      return server.eval(TIMED + change(script), keys.length, ...keys, ...args);
    },
  };
  return {
    name: "Redis by a client that runs scripts",
    listsFinished: false,
    distrustsClock: false,
    make: () => place(server, client, 0),
  };
}

/** The same, before a cluster: no script may touch two shards, so that each of them is looked at by itself. */
export function shardedRedisKind(server: Redis): Kind {
  const client = {
    async eval(script: string, keys: string[], args: string[]): Promise<unknown> {
      const tags = new Set(keys.map((key) => /\{.*?\}/.exec(key)?.[0]));
      if (tags.size > 1) throw new Error("CROSSSLOT Keys in request don't hash to the same slot");
      return server.eval(TIMED + script, keys.length, ...keys, ...args);
    },
  };
  return {
    name: "Redis, each shard by itself",
    listsFinished: false,
    distrustsClock: false,
    takesOfParts: true,
    make: () => place(server, client, 0),
  };
}

/** A connection whose scripts, and those of its copies, get the history's time. */
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
