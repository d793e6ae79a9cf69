import { usedAfterEndError } from "./errors.ts";

/** A transaction as its function gets it, and a way to end it. */
export interface GuardedTransaction<Tx> {
  readonly tx: Tx;
  end(): void;
}

/** Properties that may be read at any time, even after the end. */
const HARMLESS_PROPERTIES: ReadonlySet<string> = new Set(["then", "constructor", "toJSON", "inspect"]);

/**
 * Wraps a transaction, so that it refuses every use after its end. By then, other code may use its connection, and
 * a late statement would run in that code's transaction.
 *
 * @param refused methods that the function must not call, such as giving the connection back.
 */
export function guard<Tx>(
  transaction: Tx,
  refused: Readonly<Record<string, () => Error>> = {},
): GuardedTransaction<Tx> {
  let isOpen = true;
  const check = (): void => {
    if (!isOpen) throw usedAfterEndError();
  };
  const get = (target: object, name: string | symbol): unknown => {
    if (typeof name === "string" && !HARMLESS_PROPERTIES.has(name)) check();
    const refusal = typeof name === "string" && Object.hasOwn(refused, name) ? refused[name] : undefined;
    if (refusal !== undefined) {
      return () => {
        throw refusal();
      };
    }
    const value: unknown = Reflect.get(target, name, target);
    if (typeof value !== "function" || name === "constructor") return value;
    return (...args: readonly unknown[]): unknown => {
      check();
      return Reflect.apply(value, target, args);
    };
  };
  const apply = (target: object, self: unknown, args: readonly unknown[]): unknown => {
    check();
    return Reflect.apply(target as () => unknown, self, args);
  };
  const isObject =
    (typeof transaction === "object" && transaction !== null) || typeof transaction === "function";
  return {
    tx: isObject ? (new Proxy(transaction as object, { get, apply }) as Tx) : transaction,
    end: () => {
      isOpen = false;
    },
  };
}
