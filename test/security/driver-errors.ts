/** Errors that drivers and query builders throw, with all that they were given in them, and stores that throw them. */

/** Makes an error out of the texts that a driver was given. */
type Fail = (given: string) => unknown;

export const DRIVER_ERRORS: readonly (readonly [what: string, fail: Fail])[] = [
  [
    "a Redis driver, with the command",
    (given) =>
      Object.assign(new Error("OOM command not allowed when used memory > 'maxmemory'."), {
        name: "ReplyError",
        command: { name: "evalsha", args: ["8f2c", "1", given] },
      }),
  ],
  [
    "a query builder, with the parameters, and a database's own behind it",
    (given) => {
      const cause = Object.assign(new Error("new row violates a check constraint"), {
        code: "23514",
        detail: `Failing row contains (${given}).`,
        parameters: [given],
      });
      const message = `Failed query: insert into records values ($1)\nparams: ${given}`;
      return Object.assign(new Error(message, { cause }), { query: "insert", params: [given] });
    },
  ],
  [
    "a database, with the text that it could not read, over several lines",
    (given) =>
      Object.assign(new Error(`invalid input syntax for type json: "${given}"\n    at ${given} (x:1:1)`), {
        code: "22P02",
        where: given,
      }),
  ],
  [
    "several addresses that failed",
    (given) =>
      Object.assign(new AggregateError([new Error(given), new Error(given)], given), {
        code: "ECONNREFUSED",
      }),
  ],
  [
    "words where the kind should be",
    (given) => Object.assign(new Error("x"), { name: given, code: given, syscall: given }),
  ],
  ["text alone", (given) => given],
  [
    "an object that is no error",
    (given) => ({ message: given, code: given, stack: given, cause: { message: given } }),
  ],
];

/** Makes things fail from a moment on. */
export class Breaker {
  broken = false;
  readonly fail = (): void => {
    this.broken = true;
  };
}

/** The same object, each of whose functions throws while it is broken, with everything that it ever was given. */
export function breakable<T extends object>(
  target: T,
  breaker: Breaker,
  fail: Fail,
  given: string[] = [],
): T {
  const alike = (part: unknown): unknown => breakable(part as object, breaker, fail, given);
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name, target);
      // The held list of an inbox, and the statements of a database, fail as these do.
      if (name === "held") return alike(value);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        given.push(JSON.stringify(args, readable));
        if (breaker.broken) throw fail(given.join());
        const result: unknown = value.apply(target, args);
        return name === "prepare" ? alike(result) : result;
      };
    },
  });
}

/** Bytes as the text that they are. */
function readable(_: string, value: unknown): unknown {
  const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown };
  return type === "Buffer" ? Buffer.from(data as number[]).toString() : value;
}
