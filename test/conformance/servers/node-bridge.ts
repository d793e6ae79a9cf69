/** The smallest bridge from node:http to web-standard handlers: for the control routes, and for fetch on Node. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

export function toRequest(incoming: IncomingMessage): Request {
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i] ?? "", incoming.rawHeaders[i + 1] ?? "");
  }
  const { method = "GET", url = "/" } = incoming;
  const bodiless = method === "GET" || method === "HEAD";
  return new Request(`http://merchant.example${url}`, {
    method,
    headers,
    ...(bodiless ? {} : { body: Readable.toWeb(incoming), duplex: "half" }),
  } as RequestInit);
}

export async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body !== null) for await (const chunk of response.body) outgoing.write(chunk);
  outgoing.end();
}

/** Serves a path with a web-standard handler. */
export function viaFetch(handler: (request: Request) => Promise<Response>) {
  return (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    void handler(toRequest(incoming)).then((response) => writeResponse(response, outgoing));
  };
}
