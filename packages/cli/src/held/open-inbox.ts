import { existsSync } from "node:fs";
import type { Inbox } from "@payhooks/core";
import { UsageError } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";

/** The inbox that the options name, as the application opened it. */
export async function openInbox(given: Given): Promise<Inbox> {
  const sqlite = given.text("sqlite");
  const redis = given.text("redis");
  if (sqlite !== undefined && redis !== undefined)
    throw new UsageError("Give --redis or --sqlite, not both.");
  if (sqlite !== undefined) {
    // Opening would make an empty one, in which nothing is held.
    if (!existsSync(sqlite)) throw new UsageError(`The file ${sqlite} does not exist.`);
    const { sqliteInbox } = await import("@payhooks/core/sqlite");
    return sqliteInbox(sqlite);
  }
  const url = redis ?? process.env.REDIS_URL;
  if (url === undefined || url === "") {
    throw new UsageError(
      "There is no inbox to look into.",
      "Give --redis URL or --sqlite FILE, or set REDIS_URL.",
    );
  }
  if (!/^(?:rediss?|unix):\/\//.test(url)) {
    throw new UsageError("--redis must be an address such as redis://127.0.0.1:6379.");
  }
  const { redisInbox } = await import("@payhooks/core/redis");
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  return redisInbox(url, { prefix: given.text("prefix"), logger: silent });
}
