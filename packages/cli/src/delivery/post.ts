import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

/** A request to send. */
export interface Outgoing {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The answer to a request, or the reason why there is none. */
export interface Answer {
  /** Null if there was no answer. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The beginning of the body. */
  readonly body: string;
  readonly durationMs: number;
  /** Why there was no answer: its code, such as ECONNREFUSED, or `timeout`. */
  readonly error: string | null;
}

export const isAccepted = ({ status }: Answer): boolean => status !== null && status >= 200 && status < 300;
export const isRefused = ({ status }: Answer): boolean => status !== null && status >= 400 && status < 500;

const EXCERPT_BYTES = 2_048;
const MAX_SOCKETS = 64;

/** Sends requests to one address. Like the service, it does not follow redirects, and it sends nothing twice. */
export interface Sender {
  send(outgoing: Outgoing): Promise<Answer>;
  close(): void;
}

export function createSender(url: URL, timeoutMs: number): Sender {
  const isSecure = url.protocol === "https:";
  const options = { maxSockets: MAX_SOCKETS, keepAlive: true };
  const agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options);
  const request = isSecure ? httpsRequest : httpRequest;
  return {
    send({ method = "POST", headers, body }) {
      const startedAt = performance.now();
      return new Promise((resolve) => {
        const end = (answer: Pick<Answer, "status" | "headers" | "body" | "error">): void => {
          clearTimeout(timer);
          resolve({ ...answer, durationMs: Math.round(performance.now() - startedAt) });
        };
        const none = (error: string): void => end({ status: null, headers: {}, body: "", error });
        const length = body.length > 0 ? { "content-length": String(body.length) } : {};
        const sent = request(url, { method, agent, headers: { ...length, ...headers } });
        const timer = setTimeout(() => {
          none("timeout");
          sent.destroy();
        }, timeoutMs);
        sent.on("error", (error: NodeJS.ErrnoException) => none(error.code ?? error.message));
        sent.on("response", (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          const finish = (): void => {
            const excerpt = Buffer.concat(chunks).subarray(0, EXCERPT_BYTES).toString("utf8");
            end({
              status: response.statusCode ?? null,
              headers: response.headers,
              body: excerpt,
              error: null,
            });
          };
          response.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            size += chunk.length;
            if (size < EXCERPT_BYTES) return;
            finish();
            response.destroy();
          });
          response.on("end", finish);
          response.on("error", finish);
        });
        sent.end(body);
      });
    },
    close: () => agent.destroy(),
  };
}

/** Runs a task for every item, at most `limit` at a time. The results are in the order of the items. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await task(items[index] as Item, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
