import { connect } from "node:net";

/** The answer of a server to bytes that no HTTP client would send. */
export interface RawAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends lines of a request as they are, and reads until the server closes the connection. An event stream is read until its head is
 * complete.
 */
export function rawRequest(url: string, lines: readonly string[], body = ""): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let text = "";
    const answer = (): void => resolve({ status: Number(/^HTTP\/1\.\d (\d{3})/.exec(text)?.[1]), text });
    socket
      .setEncoding("utf8")
      .on("data", (part: string) => {
        text += part;
        if (!/^content-type: text\/event-stream/im.test(text)) return;
        answer();
        socket.destroy();
      })
      .on("end", () => {
        answer();
        socket.end();
      })
      .on("error", reject)
      .write(`${[...lines, "Connection: close"].join("\r\n")}\r\n\r\n${body}`);
  });
}

/** Hosts that are not this machine's, as a page of another site would send them, or somebody who tries to pass for this machine. */
export const FOREIGN_HOSTS: readonly string[] = [
  "evil.example",
  "evil.example:3000",
  "EVIL.example",
  "evil.example.",
  "localhost.evil.example",
  "127.0.0.1.evil.example",
  "localhost@evil.example",
  "evil.example/localhost",
  "xn--lcalhost-54a",
  "192.0.2.7",
  "[2001:db8::1]:3000",
  "[::ffff:192.0.2.7]",
  "0.0.0.0",
];

/** This machine's names, in every spelling that a browser or a person may send. */
export const OWN_HOSTS: readonly string[] = [
  "localhost",
  "LOCALHOST:3000",
  "localhost.",
  "shop.localhost:3000",
  "127.0.0.1",
  "127.0.0.1:3000",
  "127.8.9.10",
  "[::1]",
  "[::1]:3000",
];
