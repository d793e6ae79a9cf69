/** Values that merchant's code, a driver or a runtime may throw. None of it may break what reads it. */

const throws = (): never => {
  throw new Error("not to be read");
};

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** An error, all or some of whose properties throw. */
function lazy(...names: readonly string[]): Error {
  const error = new Error("lazy");
  for (const name of names) Object.defineProperty(error, name, { get: throws });
  return error;
}

function circular(): Error {
  const error = new Error("round");
  error.cause = error;
  return error;
}

/** Values that are hard to read, each made anew. */
export const HOSTILE: Readonly<Record<string, () => unknown>> = {
  "a revoked proxy": revoked,
  "a proxy that throws at everything": () =>
    new Proxy(new Error("x"), { get: throws, has: throws, getPrototypeOf: throws, ownKeys: throws }),
  "an error of lazy getters": () => lazy("stack", "name", "message", "cause", "code", "errors"),
  "an error whose message is lazy": () => lazy("message"),
  "an error like ours whose message is lazy": () =>
    Object.assign(lazy("message", "cause"), { name: "PayhooksError", code: "ERR_CLOSING" }),
  "an error whose cause is a revoked proxy": () => new Error("x", { cause: revoked() }),
  "an error whose name is a symbol": () => Object.assign(new Error("x"), { name: Symbol("name") }),
  "an error whose message has no text": () => Object.assign(new Error("x"), { message: Object.create(null) }),
  "an error that is its own cause": circular,
  "a frozen error": () => Object.freeze(new Error("cold")),
  "an AggregateError of a revoked proxy": () => new AggregateError([revoked()], "many"),
  "an error without a stack": () => Object.assign(new Error("x"), { stack: undefined }),
  "a message of a megabyte": () => new Error("x".repeat(1_000_000)),
  "an object of lazy getters": () =>
    Object.defineProperties({}, { code: { get: throws }, severity: { get: throws }, meta: { get: throws } }),
  "an object whose text throws": () => ({ toString: throws, valueOf: throws, [Symbol.toPrimitive]: throws }),
  "an object without a prototype": () => Object.create(null),
  // biome-ignore lint/suspicious/noThenProperty: it is to look like a promise.
  "a thenable": () => ({ then: throws }),
  // biome-ignore lint/suspicious/noThenProperty: it is to look like a promise.
  "an object whose then is lazy": () => Object.defineProperty({}, "then", { get: throws }),
  "a function": () => throws,
  "a symbol": () => Symbol("x"),
  "a bigint": () => 1n,
  undefined: () => undefined,
  null: () => null,
  "a text": () => "text",
};
