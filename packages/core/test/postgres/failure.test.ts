import { expect, it } from "vitest";
import { isConnectionLost } from "../../src/postgres/connection-errors.ts";
import { NoAnswerError, NotSentError, writeOutcomeOf } from "../../src/postgres/failure.ts";

const coded = (code: string): Error => Object.assign(new Error("as the driver words it"), { code });

it.each([
  ["a connection that ended while the statement was written", coded("EPIPE"), "unknown", true],
  ["a connection that was reset", coded("ECONNRESET"), "unknown", true],
  ["no answer", new NoAnswerError("no answer within 1500 ms"), "unknown", true],
  ["an error without a code", new Error("Connection terminated"), "unknown", true],
  ["a server that stops", coded("57P01"), "unknown", true],
  ["an internal error of the server", coded("XX000"), "unknown", true],
  ["a statement that was not sent", new NotSentError("there is no connection"), "not-written", true],
  ["a server that accepts no writes", coded("25006"), "not-written", true],
  ["a deadlock", coded("40P01"), "not-written", false],
  ["a full disk", coded("53100"), "not-written", false],
  ["an exception of a trigger", coded("P0001"), "not-written", false],
  ["a text that cannot be encoded", coded("22P05"), "refused", false],
  ["a constraint", coded("23514"), "refused", false],
])("%s: the outcome of the write, and whether the connection can be used again", (_, error, fate, spent) => {
  expect(writeOutcomeOf(error).kind).toBe(fate);
  expect(isConnectionLost(error)).toBe(spent);
});
