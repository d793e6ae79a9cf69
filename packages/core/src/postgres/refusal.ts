import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { NoAnswerError, NotSentError } from "./failure.ts";

/**
 * Why there is no connection, and what to do. The server's own words are not repeated: they may contain the data of a statement.
 */
interface Refusal {
  /** A code of PostgreSQL, of Node.js or of OpenSSL, or a text of `pg` that has none. */
  readonly pattern: RegExp;
  readonly what: string;
  readonly fix: string;
}

/** The first entry that fits is reported. */
const REFUSALS: readonly Refusal[] = [
  {
    pattern: /^28000\b.*(?:no encryption|SSL off)/s,
    what: "PostgreSQL refuses this role, database and address without TLS",
    fix: "Ask for TLS: ?sslmode=require in the address, or ssl in the settings of the pool. If TLS is not wanted, pg_hba.conf has to allow the connection.",
  },
  {
    pattern: /does not support SSL/,
    what: "TLS is asked for, and the server has none",
    fix: "Leave sslmode or ssl out, or switch TLS on in the server.",
  },
  {
    pattern: /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|ERR_TLS_|CERT_)/,
    what: "the server's certificate is not accepted",
    fix: "Give the certificate of its authority as ssl.ca in the settings of a pool. Check that the address has the name that the certificate is for.",
  },
  {
    pattern: /^28P01|client password must be a string|^SASL/,
    what: "PostgreSQL refuses the password, or was given none",
    fix: "Check user and password of the address. Percent-encode characters such as @ : / # in them (encodeURIComponent).",
  },
  {
    pattern: /^28000/,
    what: "PostgreSQL does not let this role in: there is none of this name, it may not log in, or pg_hba.conf has no line for it",
    fix: "Check the user in the address. CREATE ROLE name LOGIN makes one; pg_hba.conf decides who may connect from where.",
  },
  {
    pattern: /^3D000/,
    what: "the database does not exist",
    fix: "Check the name at the end of the address, or make it: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0.",
  },
  {
    pattern: /^42501/,
    what: "the role may not connect to this database",
    fix: "GRANT CONNECT ON DATABASE name TO your_role.",
  },
  {
    pattern: /^53300|remaining connection slots/,
    what: "PostgreSQL has no connection left",
    fix: "Raise max_connections, or let other programs use fewer. The inbox needs three for each process.",
  },
  {
    pattern: /^57P03/,
    what: "PostgreSQL is starting, stopping or recovering",
    fix: "Wait: this is tried again.",
  },
  {
    pattern: /^(?:ENOTFOUND|EAI_AGAIN)/,
    what: "the host of the address is not known",
    fix: "Check the host. Inside a container, localhost is the container itself.",
  },
  {
    pattern: /^ECONNREFUSED/,
    what: "nothing answers at the address",
    fix: "Check that PostgreSQL runs, that it listens there (listen_addresses), and that the port is right.",
  },
  {
    pattern: /^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)|\btimeout\b/,
    what: "the address does not answer in time",
    fix: "Check host and port, and whether a firewall is in between.",
  },
  {
    pattern: /^ENOENT/,
    what: "there is no such socket",
    fix: "Check the folder of the socket in the address, or name a host.",
  },
];

/**
 * Explains an error of connecting in words. The database may be reachable later, or let this process in, so the code is
 * that of an inbox that is away. Other errors stay as they are.
 */
export function explainConnectionError(error: unknown): unknown {
  if (isPayhooksError(error)) return error;
  const { code = "", message = "" } = (error ?? {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const text = `${String(code)} ${String(message)}`.trim();
  const refusal = REFUSALS.find(({ pattern }) => pattern.test(text));
  return refusal === undefined ? error : openFailedError(refusal.what, refusal.fix, error);
}

/** The error of a start that had no connection, or no answer. */
export function explainStartError(error: unknown): unknown {
  if (error instanceof NoAnswerError) {
    return openFailedError(
      "PostgreSQL did not answer in time",
      "Check whether it is overloaded or paused, or its tables are locked.",
      error,
    );
  }
  if (!(error instanceof NotSentError)) return explainConnectionError(error);
  const cause = explainConnectionError(error.cause ?? error);
  if (isPayhooksError(cause)) return cause;
  return openFailedError(describeError(cause), "Check the address, and the log of the server.", cause);
}

function openFailedError(problem: string, fix: string, cause: unknown): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", `PostgreSQL cannot be opened: ${problem}.`, {
    fix,
    cause,
  });
}
