/** Lines that a person should see. `console` fits. */
export interface Logger {
  /** What goes well. */
  info(message: string, facts?: Readonly<Record<string, unknown>>): void;
  /** What somebody should look at in time. */
  warn(message: string, facts?: Readonly<Record<string, unknown>>): void;
  /** What failed. */
  error(message: string, facts?: Readonly<Record<string, unknown>>): void;
}

/** The default logger. */
export const consoleLogger: Logger = {
  info: (message, facts) => console.info(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  warn: (message, facts) => console.warn(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  error: (message, facts) => console.error(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
};
