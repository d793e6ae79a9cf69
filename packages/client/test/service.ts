import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { Clock } from "../src/clock.ts";

/** A request as the service saw it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Service {
  readonly url: string;
  readonly seen: Seen[];
  /** Resolves when the next request has arrived completely. */
  arrival(): Promise<Seen>;
}

type Answer = (response: ServerResponse, seen: Seen, count: number) => void;

/** A real HTTP server that answers with the given function until the test is over. */
export async function startService(answer: Answer, port = 0): Promise<Service> {
  const seen: Seen[] = [];
  const waiting: ((one: Seen) => void)[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      const one = { method, path, headers, body: Buffer.concat(chunks).toString("utf8") };
      seen.push(one);
      answer(response, one, seen.length);
      for (const resolve of waiting.splice(0)) resolve(one);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, seen, arrival: () => new Promise((resolve) => waiting.push(resolve)) };
}

/** Answers JSON. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(text);
  };
}

/** A clock on which waits between attempts pass at once and are recorded, and timeouts happen when the test says so. */
export interface TestClock extends Clock {
  readonly waits: number[];
  timeUp(): void;
  /** Called before a wait passes. */
  onWait: (ms: number) => unknown;
}

/** The client's default `timeoutMs`. */
const TIMEOUT_MS = 15_000;

export function testClock(timeoutMs: number = TIMEOUT_MS): TestClock {
  const timeouts = new Set<() => void>();
  const clock: TestClock = {
    waits: [],
    onWait: () => {},
    now: () => Date.parse("2026-05-01T12:00:00Z"),
    after(ms, callback) {
      if (ms === timeoutMs) {
        timeouts.add(callback);
        return () => timeouts.delete(callback);
      }
      clock.waits.push(ms);
      let cancelled = false;
      void (async () => {
        await clock.onWait(ms);
        if (!cancelled) callback();
      })();
      return () => {
        cancelled = true;
      };
    },
    timeUp() {
      for (const callback of [...timeouts]) callback();
    },
  };
  return clock;
}

/** The error that a promise rejects with. */
export async function errorOf<T = Error>(promise: Promise<unknown>): Promise<T> {
  try {
    await promise;
  } catch (error) {
    return error as T;
  }
  throw new Error("It did not reject.");
}
