const HANDLER_NAME_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** The states of handlers are stored by name. So a handler must not have a name that every object has, such as `constructor`. */
export function isHandlerName(name: unknown): name is string {
  return typeof name === "string" && HANDLER_NAME_PATTERN.test(name) && !(name in {});
}
