/** A client that writes and reads the bytes of HTTP/1.1 itself: what a library would mend or hide shows. */
import { connect, type Socket } from "node:net";

/** One answer as it came over the wire. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** A header may be given more than once. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** The bytes of a request. Sends content-length unless there is a transfer-encoding or a length among the headers. */
export function request(method: string, path: string, headers: HeaderLines, body?: Uint8Array): Buffer {
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  const lines = [`${method} ${path} HTTP/1.1`];
  if (!names.has("host")) lines.push("Host: merchant.example");
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  if (body !== undefined && !names.has("content-length") && !names.has("transfer-encoding")) {
    lines.push(`Content-Length: ${body.byteLength}`);
  }
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body ?? Buffer.alloc(0)]);
}

/** Bytes in the chunked transfer encoding. */
export function chunked(parts: readonly Uint8Array[]): Buffer {
  const frames = parts.flatMap((part) => [
    Buffer.from(`${part.byteLength.toString(16)}\r\n`),
    part,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...frames, Buffer.from("0\r\n\r\n")]);
}

/** A connection. Answers are read in the order in which they come. */
export class Wire {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #waiting: (() => void)[] = [];
  #ended = false;
  /** Resolves when the server has closed the connection, or it broke. */
  readonly closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const wake = (): void => {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resume of waiting) resume();
    };
    socket.on("data", (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      wake();
    });
    // The bytes received before a reset stay readable; the end shows in `closed`.
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      const end = (): void => {
        this.#ended = true;
        wake();
        resolve();
      };
      socket.once("end", end);
      socket.once("close", end);
    });
  }

  static open(port: number): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("connect", () => resolve(new Wire(socket)));
      socket.once("error", reject);
    });
  }

  /** True once the bytes are with the system, false where the connection is gone. */
  write(bytes: Uint8Array): Promise<boolean> {
    return new Promise((resolve) => this.#socket.write(bytes, (error) => resolve(error == null)));
  }

  /** Says that nothing more comes; what is under way can still be answered. */
  end(): void {
    this.#socket.end();
  }

  /** Goes away without a word. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** The next answer; `bodiless` for HEAD. Rejects when the connection ends before it is whole. */
  async answer({ bodiless = false }: { readonly bodiless?: boolean } = {}): Promise<Answer> {
    const headEnd = await this.#find("\r\n\r\n");
    const [statusLine = "", ...lines] = this.#take(headEnd + 4)
      .toString("latin1")
      .trimEnd()
      .split("\r\n");
    const headers = new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(":")).toLowerCase(),
        line.slice(line.indexOf(":") + 1).trim(),
      ]),
    );
    const status = Number(statusLine.split(" ")[1]);
    if (headers.get("transfer-encoding") === "chunked" && !bodiless) {
      return { status, headers, body: await this.#chunks() };
    }
    const length =
      [100, 204].includes(status) || bodiless ? 0 : Number(headers.get("content-length") ?? Number.NaN);
    if (Number.isNaN(length)) {
      if (headers.get("connection") !== "close") {
        throw new Error(`An answer without content-length: ${statusLine}`);
      }
      await this.closed;
      return { status, headers, body: this.#take(this.#received.byteLength).toString("utf8") };
    }
    while (this.#received.byteLength < length) await this.#more();
    return { status, headers, body: this.#take(length).toString("utf8") };
  }

  /** A body in the chunked transfer encoding, without trailers. */
  async #chunks(): Promise<string> {
    const parts: Buffer[] = [];
    for (;;) {
      const lineEnd = await this.#find("\r\n");
      const length = Number.parseInt(this.#take(lineEnd + 2).toString("latin1"), 16);
      while (this.#received.byteLength < length + 2) await this.#more();
      parts.push(this.#take(length));
      this.#take(2);
      if (length === 0) return Buffer.concat(parts).toString("utf8");
    }
  }

  /** Bytes that were received and not read as an answer. */
  get rest(): string {
    return this.#received.toString("utf8");
  }

  async #find(mark: string): Promise<number> {
    for (;;) {
      const at = this.#received.indexOf(mark);
      if (at >= 0) return at;
      await this.#more();
    }
  }

  #take(length: number): Buffer {
    const taken = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return taken;
  }

  #more(): Promise<void> {
    if (this.#ended) throw new Error(`The connection ended after: ${JSON.stringify(this.rest)}`);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** One request on a connection of its own. */
export async function exchange(port: number, bytes: Uint8Array): Promise<Answer> {
  const wire = await Wire.open(port);
  try {
    void wire.write(bytes);
    return await wire.answer();
  } finally {
    wire.destroy();
  }
}
