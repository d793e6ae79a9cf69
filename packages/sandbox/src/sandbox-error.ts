/** The reason why the sandbox refused a call. There are no other codes. */
export type SandboxErrorCode =
  | "ERR_OPTION_INVALID"
  | "ERR_HOST_NOT_LOOPBACK"
  | "ERR_PORT_IN_USE"
  | "ERR_CANNOT_LISTEN"
  | "ERR_STATE_FILE"
  | "ERR_PARAMETERS"
  | "ERR_BODY_TOO_LARGE"
  | "ERR_NOT_FOUND"
  | "ERR_NOT_POSSIBLE"
  | "ERR_WAIT_TIMEOUT"
  | "ERR_CLOSED";

/** A parameter of a request that breaks a rule. */
export interface Problem {
  readonly field: string;
  readonly message: string;
}

/** The only error class of the sandbox. `message` says what happened and what to do. */
export class SandboxError extends Error {
  readonly code: SandboxErrorCode;
  /** The wrong parameters, if any, and their faults. */
  readonly problems: readonly Problem[];

  constructor(
    code: SandboxErrorCode,
    message: string,
    detail: { problems?: readonly Problem[]; cause?: unknown } = {},
  ) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.name = "SandboxError";
    this.code = code;
    this.problems = detail.problems ?? [];
  }
}
