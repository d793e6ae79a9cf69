import { describe, expect, it } from "vitest";
import { isReadOnly, writeOutcomeOf } from "../../src/redis/failure.ts";

/** As Redis 6.2, 7.0 and ioredis word them. */
const NOT_WRITTEN = [
  "LOADING Redis is loading the dataset in memory",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "OOM command not allowed when used memory > 'maxmemory'. script: 3f1e, on @user_script:13.",
  "READONLY You can't write against a read only replica. script: 3f1e, on @user_script:13.",
  "ERR Error running script (call to f_3f1e): @user_script:13: @user_script: 13: -READONLY You can't write against a read only replica.",
  "ERR Error running script (call to f_3f1e): @user_script:13: @user_script: 13: -OOM command not allowed when used memory > 'maxmemory'.",
  "NOREPLICAS Not enough good replicas to write. script: 3f1e, on @user_script:13.",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "NOAUTH Authentication required.",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "ASK 127 127.0.0.1:7001",
  "MOVED 127 127.0.0.1:7001",
  "CLUSTERDOWN The cluster is down",
  "CROSSSLOT Keys in request don't hash to the same slot",
  "Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request during rehashing of slot",
  "Stream isn't writeable and enableOfflineQueue options is false",
  "Cluster isn't ready and enableOfflineQueue options is false",
];
const UNKNOWN = [
  "Command timed out",
  "Connection is closed.",
  'Reached the max retries per request limit (which is 1). Refer to "maxRetriesPerRequest" option for details.',
  "WRONGTYPE Operation against a key holding the wrong kind of value script: 3f1e, on @user_script:24.",
  "read ECONNRESET",
  "Failed to refresh slots cache.",
];

describe("the outcome of a write, as its error shows it", () => {
  it.each(NOT_WRITTEN)("is not-written for %s", (message) => {
    const cause = new Error(message);
    expect(writeOutcomeOf(cause)).toEqual({ kind: "not-written", cause });
  });

  it.each(UNKNOWN)("is unknown for %s", (message) => {
    const cause = new Error(message);
    expect(writeOutcomeOf(cause)).toEqual({ kind: "unknown", cause });
  });

  it.each([
    "ERR Protocol error: invalid bulk length",
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
    "ERR max request size exceeded. Limit: 1048576 bytes",
  ])("is refused for %s", (message) => {
    const cause = new Error(message);
    expect(writeOutcomeOf(cause)).toEqual({ kind: "refused", cause });
  });

  it("is unknown for a value that is not an error", () => {
    expect(writeOutcomeOf("OOM command")).toEqual({ kind: "unknown", cause: "OOM command" });
    expect(writeOutcomeOf(undefined)).toEqual({ kind: "unknown", cause: undefined });
  });

  it("recognises a primary that was demoted, in every wording", () => {
    expect(NOT_WRITTEN.filter((message) => isReadOnly(new Error(message)))).toHaveLength(2);
  });
});
