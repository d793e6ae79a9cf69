const HANDLER_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** The state of each handler is found by the names of its handlers, so none has a name that every object has, such as `constructor`. */
export function isHandlerName(name: unknown): name is string {
  return typeof name === "string" && HANDLER_NAME.test(name) && !(name in {});
}
