import type { Context } from "hono";
import { streamSSE } from "hono/streaming";

/** An open response of server-sent events. */
export interface OpenStream {
  /** Sends one event, as JSON. Resolves once it is written. */
  send(data: unknown): Promise<void>;
  end(): void;
}

/**
 * Answers with server-sent events.
 *
 * @param begin is called once, when the stream is open. The function that it returns is called once the stream has
 * ended, whoever ended it.
 */
export function eventStream(c: Context, begin: (stream: OpenStream) => () => void): Response {
  const response = streamSSE(c, async (sse) => {
    // The browser knows that it is connected only when the first bytes arrive.
    await sse.write(": open\n\n");
    let onEnd = (): void => {};
    await new Promise<void>((resolve) => {
      sse.onAbort(() => resolve());
      onEnd = begin({
        send: (data) => sse.writeSSE({ data: JSON.stringify(data) }),
        end: () => resolve(),
      });
    });
    onEnd();
  });
  // These two belong to the connection. The server that writes the response sets them, and HTTP/2 forbids them.
  response.headers.delete("transfer-encoding");
  response.headers.delete("connection");
  // A proxy that compresses or buffers the response would hold events back.
  response.headers.set("cache-control", "no-store, no-transform");
  response.headers.set("x-accel-buffering", "no");
  return response;
}
