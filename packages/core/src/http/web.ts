import { LINGER_MS, type Reply } from "../protocol/delivery.ts";
import type { Cancellation } from "../time/cancellation.ts";
import { systemClock } from "../time/clock.ts";
import { bytesOfText } from "./kept-text.ts";
import type { BodyFault, MountedFlow } from "./mount.ts";

/** The facts that an adapter knows about a web-standard request besides the request itself. */
export interface RequestFacts {
  readonly remoteAddress?: string | undefined;
  readonly tenant?: string | undefined;
  readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
  /** True if something else has read the body and the request itself does not show it. */
  readonly bodyUsed?: boolean | undefined;
  /** The body that its reader has kept, by the name of the method that it was read with. */
  readonly kept?: { readonly arrayBuffer?: unknown; readonly text?: unknown } | undefined;
  /** The advice if something else has read the body. */
  readonly fix: string;
}

const ON_DENO = "Deno" in globalThis;

type BodyReader = ReadableStreamDefaultReader<Uint8Array>;

/** Answers a web-standard request with a mounted flow, for adapters of frameworks that are built on such requests. */
export async function answerRequest<Platform>(
  mounted: MountedFlow<Platform>,
  request: Request,
  { bodyUsed, fix, kept, remoteAddress, tenant, waitUntil }: RequestFacts,
  platform: Platform,
): Promise<Response> {
  const body = new RequestBody(request);
  const reply = await mounted.answer(
    {
      method: request.method,
      url: request.url,
      headers: {
        get: (name) => trimWhitespace(request.headers.get(name)),
        keys: () => request.headers.keys(),
      },
      remoteAddress,
      tenant,
      waitUntil,
      readBody: async (maxBodyBytes, cancellation) =>
        (bodyUsed === true
          ? await readKeptBytes(kept, request)
          : await body.read(maxBodyBytes, cancellation)) ?? {
          code: "ERR_BODY_CONSUMED",
          why: `the request's body was read before Payhooks: ${fix}`,
        },
    },
    platform,
  );
  const discarding = body.discardRest();
  return discarding === null ? asResponse(reply) : responseAfterRest(reply, discarding);
}

/** The bytes that the reader of a body has kept, if they are exactly those that were sent; otherwise null. */
async function readKeptBytes(
  keptBody: RequestFacts["kept"],
  { headers }: Request,
): Promise<Uint8Array | null> {
  const length = headers.get("content-length");
  try {
    const [bytes, text] = [await keptBody?.arrayBuffer, await keptBody?.text];
    if (bytes instanceof ArrayBuffer) {
      return length === null || length === String(bytes.byteLength) ? new Uint8Array(bytes) : null;
    }
    return typeof text === "string" ? bytesOfText(text, length) : null;
  } catch {
    // The connection broke while the body was read.
    return null;
  }
}

/** A request's body, read once. */
class RequestBody {
  readonly #request: Request;
  #isRead = false;
  #reader: BodyReader | null = null;
  #whole: Promise<unknown> | null = null;

  constructor(request: Request) {
    this.#request = request;
  }

  /** The exact bytes, up to a limit, or why they are not available; null if something else has read them. */
  async read(maxBodyBytes: number, cancellation: Cancellation): Promise<Uint8Array | BodyFault | null> {
    if (this.#request.bodyUsed) return null;
    const length = lengthOf(this.#request);
    const bytes =
      length === null || length > maxBodyBytes
        ? await this.#readParts(maxBodyBytes, cancellation)
        : await this.#readWhole(length);
    this.#isRead = bytes instanceof Uint8Array;
    return bytes;
  }

  /** Reads a body whose announced length the protocol enforces. This is several times as fast as a stream, on every runtime. */
  async #readWhole(length: number): Promise<Uint8Array | BodyFault | null> {
    try {
      const whole = this.#request.arrayBuffer();
      this.#whole = whole;
      const bytes = new Uint8Array(await whole);
      return bytes.byteLength === length
        ? bytes
        : incompleteBodyFault("it is shorter than its content-length");
    } catch (error) {
      // A body that was locked but not read is still complete.
      return this.#request.bodyUsed ? incompleteBodyFault(String(error)) : null;
    }
  }

  async #readParts(maxBodyBytes: number, cancellation: Cancellation): Promise<Uint8Array | BodyFault | null> {
    if (this.#request.body?.locked === true) return null;
    this.#reader = this.#open();
    return this.#reader === null ? new Uint8Array(0) : readAll(this.#reader, maxBodyBytes, cancellation);
  }

  #open(): BodyReader | null {
    const { bodyUsed, body } = this.#request;
    return bodyUsed || body === null || body.locked ? null : body.getReader();
  }

  /** Reads the rest for a while and discards it. Otherwise a sender that is still sending would not see the answer. */
  discardRest(): Promise<void> | null {
    if (this.#isRead) return null;
    if (this.#whole !== null) return waitForBody(this.#whole);
    this.#reader ??= this.#open();
    return this.#reader === null ? null : discardBody(this.#reader);
  }
}

/** The length that the sender has announced, if any. */
function lengthOf({ headers }: Request): number | null {
  const text = headers.get("content-length");
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function incompleteBodyFault(why: string): BodyFault {
  return { code: "ERR_BODY_INCOMPLETE", why };
}

/** White space around a value is not part of it (RFC 9110, 5.5), but workerd keeps tabs there. */
function trimWhitespace(value: string | null): string | null {
  if (value === null) return null;
  let start = 0;
  let end = value.length;
  while (value[start] === " " || value[start] === "\t") start++;
  while (end > start && (value[end - 1] === " " || value[end - 1] === "\t")) end--;
  return value.slice(start, end);
}

/** The exact bytes of the body, up to a limit. */
async function readAll(
  reader: BodyReader,
  maxBodyBytes: number,
  cancellation: Cancellation,
): Promise<Uint8Array | BodyFault> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    while (!cancellation.isCancelled) {
      const part = await reader.read();
      if (part.done) return joinChunks(chunks, length);
      length += part.value.byteLength;
      if (length > maxBodyBytes) {
        return { code: "ERR_BODY_TOO_LARGE", why: `the body has more than ${maxBodyBytes} bytes` };
      }
      chunks.push(part.value);
    }
    return { code: "ERR_BODY_TIMEOUT", why: "nobody waits for it any more" };
  } catch (error) {
    return incompleteBodyFault(String(error));
  }
}

function joinChunks(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const body = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return body;
}

/** If the body is being read already, only waits for that. */
function waitForBody(reading: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const stop = systemClock.after(LINGER_MS, resolve);
    const finish = (): void => {
      stop();
      resolve();
    };
    reading.then(finish, finish);
  });
}

/** Reads to the end, or until the sender's time is up. */
async function discardBody(reader: BodyReader): Promise<void> {
  const stop = systemClock.after(LINGER_MS, () => void reader.cancel().catch(() => {}));
  try {
    while (!(await reader.read()).done);
  } catch {
    // The sender has gone away.
  } finally {
    stop();
  }
}

function asResponse({ status, headers, body }: Reply): Response {
  // A status such as 204 takes no body, not even an empty one.
  return new Response(body === "" ? null : body, { status, headers });
}

/**
 * The answer to a request whose body was not read to its end. If the connection is to be closed, the answer is sent at once but
 * ends only with the request. Closing while the sender is still sending would reset the connection, and the answer could be
 * lost.
 */
function responseAfterRest(reply: Reply, discarding: Promise<void>): Response {
  if (reply.headers.connection !== "close" || reply.body === "") return asResponse(reply);
  const bytes = new TextEncoder().encode(reply.body);
  const body = new ReadableStream<Uint8Array>({
    async start(stream) {
      stream.enqueue(bytes);
      await discarding;
      try {
        stream.close();
      } catch {
        // The sender no longer reads the answer.
      }
    },
  });
  // When an answer has its full length, Deno considers the exchange finished, and reads no more of the request.
  const length = ON_DENO ? {} : { "content-length": String(bytes.byteLength) };
  return new Response(body, { status: reply.status, headers: { ...reply.headers, ...length } });
}
