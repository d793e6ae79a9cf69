import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Clock } from "../clock.ts";

export interface PostResult {
  readonly answer: { readonly status: number; readonly bodyExcerpt: string } | null;
  readonly error: string | null;
  readonly durationMs: number;
}

export interface PostRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  /** Sends half of the body, then resets the connection. */
  readonly resetMidBody: boolean;
}

export interface Transport {
  /** Never rejects. It does not follow redirects: they are answers like any other. */
  post(request: PostRequest): Promise<PostResult>;
  close(): void;
}

/** How much of an answer is read and kept, at most. */
const MAX_EXCERPT_BYTES = 2_048;
const MAX_SOCKETS = 64;

export function createTransport(
  clock: Clock,
  options: { readonly answerTimeoutMs: number; readonly ca: string | undefined },
): Transport {
  const http = new HttpAgent({ maxSockets: MAX_SOCKETS });
  const https = new HttpsAgent({ maxSockets: MAX_SOCKETS, ...(options.ca && { ca: options.ca }) });

  const post = (postRequest: PostRequest): Promise<PostResult> => {
    const startedAt = performance.now();
    const whenAnswered = new Promise<Omit<PostResult, "durationMs">>((resolve) => {
      const secure = new URL(postRequest.url).protocol === "https:";
      const request = (secure ? httpsRequest : httpRequest)(postRequest.url, {
        method: "POST",
        headers: postRequest.headers,
        agent: secure ? https : http,
        signal: postRequest.signal,
      });
      const timeout = `no answer within ${options.answerTimeoutMs} ms`;
      const stopTimer = clock.after(options.answerTimeoutMs, () => request.destroy(new Error(timeout)));
      const end = (result: Omit<PostResult, "durationMs">) => {
        stopTimer();
        resolve(result);
      };
      request.on("error", (error) => end({ answer: null, error: describe(error) }));
      request.on("response", (response) => readExcerpt(response, end));
      if (!postRequest.resetMidBody) {
        request.end(postRequest.body);
        return;
      }
      request.write(postRequest.body.slice(0, Math.floor(postRequest.body.length / 2)), () => {
        end({ answer: null, error: "connection reset in the middle of the body (fault)" });
        request.socket?.resetAndDestroy();
        request.destroy();
      });
    });
    // Node throws at once if it can make no request of the address, as of a user name with a broken escape.
    const settled = whenAnswered.catch((error: Error) => ({ answer: null, error: describe(error) }));
    return settled.then((result) => ({
      ...result,
      durationMs: Math.round((performance.now() - startedAt) * 10) / 10,
    }));
  };

  return {
    post,
    close() {
      http.destroy();
      https.destroy();
    },
  };
}

/** Reads only as much of an answer as the dispatch log keeps. */
function readExcerpt(response: IncomingMessage, end: (result: Omit<PostResult, "durationMs">) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = () => {
    const bodyExcerpt = Buffer.concat(chunks).subarray(0, MAX_EXCERPT_BYTES).toString("utf8");
    end({ answer: { status: response.statusCode ?? 0, bodyExcerpt }, error: null });
  };
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length < MAX_EXCERPT_BYTES) return;
    finish();
    response.destroy();
  });
  response.on("end", finish);
  response.on("error", (error) => end({ answer: null, error: describe(error) }));
}

function describe(error: Error & { code?: string }): string {
  const text = error.message || error.name;
  return error.code && !text.includes(error.code) ? `${error.code}: ${text}` : text;
}
