import type { Context } from "hono";
import { streamSSE } from "hono/streaming";

/** A response of server-sent events that is open. */
export interface OpenStream {
  /** Sends one event; resolves once it is on its way. */
  send(data: unknown): Promise<void>;
  end(): void;
}

/**
 * A response of server-sent events.
 *
 * @param begin is called once, when the stream is open; what it returns is called when it has ended, whoever ended it
 */
export function eventStream(c: Context, begin: (stream: OpenStream) => () => void): Response {
  const response = streamSSE(c, async (sse) => {
    // Something has to come at once, or else the browser does not know that it is connected.
    await sse.write(": open\n\n");
    let ended = (): void => {};
    await new Promise<void>((resolve) => {
      sse.onAbort(() => resolve());
      ended = begin({
        send: (data) => sse.writeSSE({ data: JSON.stringify(data) }),
        end: () => resolve(),
      });
    });
    ended();
  });
  // These belong to a connection. Whoever writes the response to one knows better, and HTTP/2 refuses them.
  response.headers.delete("transfer-encoding");
  response.headers.delete("connection");
  // What compresses on the way would hold events back.
  response.headers.set("cache-control", "no-store, no-transform");
  response.headers.set("x-accel-buffering", "no");
  return response;
}
