import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";

/** A request to send. */
export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The answer to a request, or the reason why there is none. */
export interface PostResult {
  /** Null if there was no answer. */
  readonly status: number | null;
  /** The beginning of the body. */
  readonly body: string;
  readonly durationMs: number;
  /** Why there was no answer: its code, such as ECONNREFUSED, or `timeout`. */
  readonly error: string | null;
}

export const isAccepted = ({ status }: PostResult): boolean =>
  status !== null && status >= 200 && status < 300;
export const isRefused = ({ status }: PostResult): boolean =>
  status !== null && status >= 400 && status < 500;

const MAX_EXCERPT_BYTES = 2_048;

/** Posts once. Like the service, it does not follow redirects. `fetch` would refuse ports such as 6000. */
export function post(url: URL, { headers, body }: PostRequest, timeoutMs: number): Promise<PostResult> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const end = (answer: Omit<PostResult, "durationMs">): void =>
      resolve({ ...answer, durationMs: Math.round(performance.now() - startedAt) });
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      method: "POST",
      headers: { "content-length": String(body.length), ...headers },
      signal: AbortSignal.timeout(timeoutMs),
    });
    request.on("error", ({ code, message }: NodeJS.ErrnoException) =>
      end({ status: null, body: "", error: code === "ABORT_ERR" ? "timeout" : (code ?? message) }),
    );
    request.on("response", async (response) => {
      end({ status: response.statusCode ?? null, body: await excerptOf(response), error: null });
    });
    request.end(body);
  });
}

/** The beginning of a body, even if it breaks off. */
async function excerptOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_EXCERPT_BYTES) break;
    }
  } catch {
    // The part that has come is shown.
  }
  return Buffer.concat(chunks).subarray(0, MAX_EXCERPT_BYTES).toString("utf8");
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
