import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A merchant's server as these tests need it: it keeps what comes and answers what it is told to. */
export interface TestReceiver {
  readonly url: string;
  readonly received: Received[];
  /** Requests whose connection ended before their body did. */
  readonly broken: () => number;
  /** Answers in this order; after the last one, 200. */
  answerWith(...answers: (number | ((response: ServerResponse) => void))[]): void;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<TestReceiver> {
  const received: Received[] = [];
  const answers: (number | ((response: ServerResponse) => void))[] = [];
  let broken = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {
      broken += 1;
    });
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString("utf8") });
      const answer = answers.shift() ?? 200;
      if (typeof answer === "function") answer(response);
      else response.writeHead(answer, { "content-type": "text/plain" }).end(`answer ${answer}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks`,
    received,
    broken: () => broken,
    answerWith: (...more) => answers.push(...more),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
