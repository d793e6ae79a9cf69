/** The same thing, some of whose methods are others: what is wrapped keeps what nobody has replaced. */
export function around<T extends object>(thing: T, replaced: Partial<T>): T {
  return new Proxy(thing, {
    get(_, name) {
      if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name);
      const value: unknown = Reflect.get(thing, name, thing);
      return typeof value === "function" ? value.bind(thing) : value;
    },
  });
}
