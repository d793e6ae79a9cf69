import { type KeepOptions, keepMsOf } from "../flows/keep-options.ts";
import { checkChoice, checkFlag, checkNames } from "../protocol/check-names.ts";
import { checkLimit, checkTime } from "../protocol/check-number.ts";
import { invalidOptionError } from "../protocol/errors.ts";
import type { SourceEvent } from "../protocol/events.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import { customVerifier } from "./other-verifiers.ts";
import { toHeaderName } from "./signed-text.ts";
import type { OutputOf, StandardSchemaV1 } from "./standard-schema.ts";
import { type Verifier, type VerifierFactory, type VerifyFunction, verifierFactoryOf } from "./verifier.ts";

/** An authentic delivery, as `read` gets it. */
export interface SourceDelivery {
  /**
   * The authentic bytes, by `body` of the source: a JSON value, an object of form fields, or text. Frozen, without
   * prototypes. Its type is for you to say: nothing has checked it.
   */
  // biome-ignore lint/suspicious/noExplicitAny: as what JSON.parse gives, and read runs under a guard.
  readonly body: any;
  readonly bytes: Uint8Array;
  /** The SHA-256 of the bytes, in hex. */
  readonly digest: string;
  /** Signed header fields, such as `webhook-id`. */
  readonly signedHeaders: { get(name: string): string | null };
  /** Header fields that anybody may have written. Never an id, a tenant or an amount. */
  readonly unsignedHeaders: { get(name: string): string | null };
  readonly signedAt: Date | null;
}

/** The event in a delivery, as `read` returns it. */
export interface ReadEvent<Status extends string = string> {
  /** The event's name. Handlers are registered for it. */
  readonly name: string;
  /** The id that copies share. The signature must cover it. Default: `digest`. Then a copy under another unsigned name is held. */
  readonly id?: string | undefined;
  readonly data: unknown;
  /** When it happened: a date, text in ISO 8601, or milliseconds since the epoch. */
  readonly occurredAt?: Date | string | number | undefined;
  /** One of `stages`. Then `id` is the id of the object whose status changes, and the record is about this object. */
  readonly status?: Status | undefined;
  /** Found by `events.list({ referenceId })`, beside the references of payments. */
  readonly reference?: string | undefined;
  /** The tenant of the event. It must come from the part that the signature covers. */
  readonly tenant?: string | undefined;
  /**
   * The subject whose new state the event reports, such as `account:17` for the status of an account. Of the events of
   * one subject, the latest by `occurredAt` counts: an earlier event that has not ended becomes stale. So `occurredAt`
   * is required, and must be signed. Leave `subject` out for an event that must run even after later events.
   */
  readonly subject?: string | undefined;
  /** The values that must be equal in copies. Default: the name. */
  readonly fixedFacts?: Readonly<Record<string, string>> | undefined;
  /**
   * An id that no signature covers, shown to people. A search by reference uses `reference`, or this if there is no
   * `reference`, or `subject` if there is neither.
   */
  readonly unsignedId?: string | undefined;
}

/** An answer to a sender. */
export interface Answer {
  /** From 200 to 299. */
  readonly status: number;
  readonly body?: string | undefined;
  /** Default `text/plain`. */
  readonly contentType?: string | undefined;
}

/** No names are known: any text, and `unknown` data. */
export interface AnyEvents {
  readonly [name: string]: unknown;
}

/** A schema for each name. */
export type Schemas = Readonly<Record<string, StandardSchemaV1>>;

declare const TYPES: unique symbol;

/** Names and types that are not checked, such as those of a package of types. */
export interface TypesOnly<Events> {
  readonly [TYPES]: Events;
}

const ONLY_TYPES = Object.freeze({}) as TypesOnly<never>;

/**
 * Names and types of events. Nothing checks them.
 *
 * @example github({ secret, events: typesOnly<{ push: PushEvent; issues: IssuesEvent }>() })
 */
export function typesOnly<Events>(): TypesOnly<Events> {
  return ONLY_TYPES;
}

/** The types of the events that the option `events` of a source names. */
export type TypesOf<Given> =
  Given extends TypesOnly<infer Events>
    ? Events
    : Given extends Schemas
      ? { readonly [Name in keyof Given]: OutputOf<Given[Name]> }
      : AnyEvents;

declare const SOURCE: unique symbol;

/** A sender of webhooks. Made by {@link source}. */
export interface Source<Events = AnyEvents> {
  readonly [SOURCE]: (events: Events) => Events;
}

/** Options of {@link source}. */
export interface SourceOptions<Given, Status extends string> {
  readonly verify: Verifier | VerifyFunction;
  /** Pure and synchronous, because it runs again at each run of the event. If it throws, the event is held as `malformed`. */
  readonly read: (delivered: SourceDelivery) => ReadEvent<NoInfer<Status>>;
  /** A Standard Schema for each name, or `typesOnly`. An event that does not fit is held as `schema` when it is to run. */
  readonly events?: Given | undefined;
  /** How the authentic bytes are parsed. Default `json`. */
  readonly body?: "json" | "form" | "text" | undefined;
  /** The order of statuses: a later stage replaces an earlier one, and the last is final. */
  readonly stages?: readonly (readonly Status[])[] | undefined;
  /** Header fields to keep besides those that are covered or that `read` asks for. */
  readonly keepHeaders?: readonly string[] | undefined;
  /** The answer to an accepted delivery (default 200), and the status for a delivery that is not authentic (default 401). */
  readonly answer?:
    | { readonly accepted?: Answer | undefined; readonly badSignatureStatus?: 400 | 401 | 403 | undefined }
    | undefined;
  /** The answer to an authentic delivery that carries no event, such as a challenge; null for an event. */
  readonly handshake?: ((delivered: SourceDelivery) => Answer | null) | undefined;
  /** The answer to a GET; null for none. Its text is sent as plain text. */
  readonly challenge?: ((request: { readonly query: URLSearchParams }) => string | null) | undefined;
  /**
   * For an event whose name has no handler: `acknowledge` (default) answers 200, counts the event and stores nothing.
   * `hold` keeps it for a person.
   */
  readonly unhandled?: "acknowledge" | "hold" | undefined;
  /** How long an ended event is recognised. At least as long as the sender retries. Default: the receiver's window and a day. */
  readonly rememberMs?: number | undefined;
  /** Keeps what was signed after the end, so that events can be run again. Default: it is dropped. */
  readonly keep?: KeepOptions | undefined;
  /** Larger bodies are answered 413. Default 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** The sender never sends again. Then the refusal of an authentic delivery raises an alert at once. */
  readonly sendsOnce?: boolean | undefined;
}

/** A source as its flow takes it: checked, with its defaults. */
export interface SourceDefinition {
  readonly bindVerifier: VerifierFactory;
  readonly read: (delivered: SourceDelivery) => ReadEvent;
  readonly schemas: Schemas | null;
  /** The names that are known; null if any text may be one. */
  readonly names: readonly string[] | null;
  readonly body: "json" | "form" | "text";
  /** The stage of each status; null without stages. */
  readonly stageOf: ReadonlyMap<string, number> | null;
  readonly lastStage: number;
  readonly keepHeaders: readonly string[];
  readonly accepted: Answer | null;
  readonly badSignatureStatus: number;
  readonly handshake: ((delivered: SourceDelivery) => Answer | null) | null;
  readonly challenge: ((request: { readonly query: URLSearchParams }) => string | null) | null;
  readonly unhandled: "acknowledge" | "hold";
  readonly rememberMs: number | undefined;
  readonly keepMs: number | undefined;
  readonly maxBodyBytes: number;
  readonly sendsOnce: boolean;
}

const definitions = new WeakMap<object, SourceDefinition>();

const DEFAULT_MAX_BODY_BYTES = 1024 * 1024;

/**
 * Describes a sender of webhooks, for the option `sources` of a receiver.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for options that cannot work. Keys are checked at the start.
 * @example
 * ```ts
 * const bank = source({
 *   verify: hmac({ header: "x-bank-signature", secret: process.env.BANK_SECRET }),
 *   read: ({ body }) => ({ id: body.id, name: body.type, data: body.data }),
 * });
 * ```
 */
export function source<
  const Given extends Schemas | TypesOnly<unknown> | undefined = undefined,
  const Status extends string = never,
>(options: SourceOptions<Given, Status>): Source<TypesOf<Given>> {
  checkNames("source", options, {
    verify: true,
    read: true,
    events: true,
    body: true,
    stages: true,
    keepHeaders: true,
    answer: true,
    handshake: true,
    challenge: true,
    unhandled: true,
    rememberMs: true,
    keep: true,
    maxBodyBytes: true,
    sendsOnce: true,
  });
  const { verify, read, events, body = "json", stages, keepHeaders = [], answer = {} } = options;
  const { handshake = null, challenge = null, unhandled = "acknowledge", rememberMs } = options;
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES, sendsOnce = false } = options;
  const bindVerifier = typeof verify === "function" ? customVerifier(verify) : verifierFactoryOf(verify);
  if (bindVerifier === null) {
    throw invalidOptionError(
      "The verify of a source must be a verifier.",
      "Use hmac, publicKeySignature, token, anyOf, unsafeUnsigned, or a function.",
    );
  }
  if (typeof read !== "function") {
    throw invalidOptionError(
      "read of a source is not a function.",
      "Give ({ body }) => ({ id, name, data }).",
    );
  }
  checkChoice("body of a source", body, { json: true, form: true, text: true });
  checkChoice("unhandled of a source", unhandled, { acknowledge: true, hold: true });
  for (const [name, given] of Object.entries({ handshake, challenge })) {
    if (given === null || typeof given === "function") continue;
    throw invalidOptionError(`${name} of a source is not a function.`, "Give a function, or leave it out.");
  }
  checkFlag("sendsOnce of a source", sendsOnce);
  checkNames("answer of a source", answer, { accepted: true, badSignatureStatus: true });
  const { accepted = null, badSignatureStatus = 401 } = answer;
  if (accepted !== null) checkAnswer(accepted);
  if (![400, 401, 403].includes(badSignatureStatus)) {
    throw invalidOptionError(
      `badSignatureStatus of a source is ${describeValue(badSignatureStatus)}.`,
      "It can be 400, 401 or 403.",
    );
  }
  if (rememberMs !== undefined) checkTime("rememberMs", rememberMs);
  checkLimit("maxBodyBytes", maxBodyBytes);
  const schemas = schemasIn(events);
  const sourceHandle = Object.freeze({}) as Source<TypesOf<Given>>;
  definitions.set(sourceHandle, {
    bindVerifier,
    read,
    schemas,
    names: schemas === null ? null : Object.keys(schemas),
    body,
    stageOf: stages === undefined ? null : stagesOf(stages),
    lastStage: (stages?.length ?? 1) - 1,
    keepHeaders: keepHeaders.map((name) => toHeaderName("a source", "keepHeaders", name)),
    accepted,
    badSignatureStatus,
    handshake,
    challenge,
    unhandled,
    rememberMs,
    keepMs: keepMsOf("keep of a source", options.keep),
    maxBodyBytes,
    sendsOnce,
  });
  return sourceHandle;
}

/** The parts that {@link source} made; null for anything else. */
export function definitionOf(value: unknown): SourceDefinition | null {
  return typeof value === "object" && value !== null ? (definitions.get(value) ?? null) : null;
}

function schemasIn(events: unknown): Schemas | null {
  if (events === undefined || events === ONLY_TYPES) return null;
  for (const [name, schema] of Object.entries(events as Readonly<Record<string, unknown>>)) {
    const standard = Object(schema)["~standard"] as { readonly validate?: unknown } | undefined;
    if (typeof standard?.validate !== "function") {
      throw invalidOptionError(
        `The schema of ${JSON.stringify(name)} is no Standard Schema.`,
        "Use one of Zod, Valibot, ArkType or another library that follows it.",
      );
    }
  }
  return events as Schemas;
}

function stagesOf(stages: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  const stageByStatus = new Map<string, number>();
  for (const [stage, statuses] of stages.entries()) {
    for (const status of statuses) {
      if (status === "" || stageByStatus.has(status)) {
        throw invalidOptionError(
          `The status ${JSON.stringify(status)} is in stages twice, or empty.`,
          "Name each status once.",
        );
      }
      stageByStatus.set(status, stage);
    }
  }
  if (stageByStatus.size === 0)
    throw invalidOptionError("stages of a source is empty.", "Name the statuses, or leave it out.");
  return stageByStatus;
}

/** Throws for an answer that would let the sender send again, or that a browser would run. */
export function checkAnswer(answer: Answer): void {
  checkNames("An answer of a source", answer, { status: true, body: true, contentType: true });
  const { status, body = "", contentType = "" } = answer;
  if (!Number.isInteger(status) || status < 200 || status > 299) {
    throw invalidOptionError(
      `An answer of a source has the status ${status}.`,
      "It is from 200 to 299: anything else is a refusal.",
    );
  }
  if (typeof body !== "string") {
    throw invalidOptionError(`The body of an answer of a source is of type ${typeof body}.`, "Give text.");
  }
  if (body !== "" && (status === 204 || status === 205)) {
    throw invalidOptionError(
      `An answer of a source has the status ${status} and a body.`,
      "Leave the body out, or use 200.",
    );
  }
  if (typeof contentType !== "string" || /[^\t\x20-\x7e]/.test(contentType)) {
    throw invalidOptionError(
      "The contentType of an answer of a source is not a valid header value.",
      "Give printable ASCII, such as application/json.",
    );
  }
  if (/html|xml|script/i.test(contentType) && !/^(?:text|application)\/xml/i.test(contentType)) {
    throw invalidOptionError(
      `An answer of a source is ${contentType}.`,
      "Answer with plain text, JSON or XML.",
    );
  }
}

/** Sources by their names, as a receiver takes them. */
// biome-ignore lint/suspicious/noExplicitAny: a source of any events, which are in both places of a function.
export type Sources = Readonly<Record<string, Source<any>>>;

type EventsOf<Given> = Given extends Source<infer Events> ? Events : never;

/** True for events whose names are not known. */
type IsOpen<Events> = string extends keyof Events ? true : false;

/** The names for which handlers of a source can be registered. `"*"` is every one. */
export type NameOf<Given> =
  IsOpen<EventsOf<Given>> extends true ? string : (keyof EventsOf<Given> & string) | "*";

/** An event of a source, by its name. `"*"` gives the union over all names, so that `event.event` narrows `event.data`. */
export type EventOfSource<Flow extends string, Given, Name extends string> =
  IsOpen<EventsOf<Given>> extends true
    ? SourceEvent<Flow, Name extends "*" ? string : Name, unknown>
    : Name extends "*"
      ? {
          [Each in keyof EventsOf<Given> & string]: SourceEvent<Flow, Each, EventsOf<Given>[Each]>;
        }[keyof EventsOf<Given> & string]
      : Name extends keyof EventsOf<Given>
        ? SourceEvent<Flow, Name, EventsOf<Given>[Name]>
        : never;
