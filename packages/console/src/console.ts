import { type AnyReceiver, PayhooksError } from "@payhooks/core";
import { type ReceiverOrFactory, receiverOf } from "@payhooks/core/adapter";
import { hostName, PAGE_HEADERS } from "@payhooks/pages";
import { type Context, Hono } from "hono";
import { activityOf } from "./activity/activity.ts";
import { changeStream } from "./activity/stream.ts";
import { answerScriptRequest } from "./decide.ts";
import { download, isDownload } from "./download.ts";
import { crossSiteProblem, hostProblem, isPermitted } from "./guard.ts";
import { type ConsoleOptions, type ConsoleUser, checkOptions, userOf } from "./options.ts";
import { problemOf } from "./problem.ts";
import { flowsOf, readQuery } from "./query.ts";
import { type PageRequest, regionsOf } from "./regions.ts";
import { filterForm } from "./views/list.ts";
import { ASSETS, consolePage, plainPage } from "./views/page.ts";

const RESPONSE_HEADERS = {
  ...PAGE_HEADERS,
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** The largest body that the page's script sends: it has some hundred event ids, or a note. */
const MAX_BODY_BYTES = 64 * 1024;

/** A console as the adapters use it. Each adapter passes its own kind of request to `authorize`. */
export interface Console<Given, Platform = void> {
  /** Asks `authorize` who sends a request. Rejects with the error that it throws. */
  admit(given: Given): Promise<ConsoleUser | null>;
  /** Answers a request of the user that `admit` returned. */
  answer(request: Request, user: ConsoleUser | null, platform: Platform): Promise<Response>;
}

interface Env {
  readonly Bindings: { readonly user: ConsoleUser; readonly receiver: AnyReceiver };
}

/**
 * Makes a console.
 *
 * @param isUrlSent whether the address of a request is the sent address, as on Node's own servers: see {@link hostProblem}.
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 */
export function createConsole<Given, Platform = void>(
  source: ReceiverOrFactory<Platform>,
  options: ConsoleOptions<Given>,
  isUrlSent = false,
): Console<Given, Platform> {
  checkOptions(options);
  const allowedHosts = new Set(options.allowedHosts?.map(hostName));
  // This begins to count at once. A factory is called only when the console is first opened.
  if (typeof source !== "function") activityOf(source);
  const app = createApp(options.redact ?? []);
  return {
    async admit(request) {
      const user = userOf(await options.authorize(request));
      if (user !== undefined) return user;
      throw new PayhooksError("ERR_OPTION_INVALID", "authorize answered with neither a user nor null.", {
        fix: 'Answer { by, can: ["view", "replay", "discard"] } with the rights that somebody has, or null.',
      });
    },
    async answer(request, user, platform) {
      const problem = hostProblem(request, allowedHosts, isUrlSent);
      if (problem !== null) return messagePage(421, "Another host", problem);
      const asset = publicAsset(request);
      if (asset !== null) return asset;
      if (user === null || !isPermitted(user, "view")) {
        return messagePage(
          403,
          "No access",
          "You may not see this page. Sign in as a user who may, and load it again.",
        );
      }
      let receiver: AnyReceiver;
      try {
        receiver = await receiverOf(source, platform);
      } catch (error) {
        return messagePage(503, "Not available", problemOf(error)?.message ?? logError(error));
      }
      try {
        return await app.fetch(request, { user, receiver });
      } catch (error) {
        // Hono's onError gets errors only, and anything may be thrown.
        return failureResponse(error);
      }
    },
  };
}

/** The query distinguishes requests. So everything has one address, and routers and proxies need to know no other. */
function createApp(redact: readonly string[]): Hono<Env> {
  const app = new Hono<Env>();

  const pageRequestOf = (c: Context<Env>): PageRequest => {
    const { receiver, user } = c.env;
    const query = readQuery(new URL(c.req.url).searchParams);
    return { receiver, user, activity: activityOf(receiver), query, redact };
  };

  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(RESPONSE_HEADERS)) {
      if (!c.res.headers.has(name)) c.res.headers.set(name, value);
    }
  });

  app.get("*", async (c) => {
    const { asset, stream, part, download: kind } = c.req.query();
    if (asset !== undefined) return file(c, asset);
    if (stream !== undefined) return changeStream(c, c.env.receiver, activityOf(c.env.receiver));
    const request = pageRequestOf(c);
    if (isDownload(kind)) return download(request.receiver, request.query, kind, redact);
    const { regions, problem, status } = await regionsOf(request);
    if (part === "regions") {
      const html = Object.entries(regions).map(([id, region]) => [id, String(region)]);
      return c.json({ regions: Object.fromEntries(html), problem }, status === 400 ? 400 : 200);
    }
    return c.html(
      consolePage(request.user, request.query, regions, {
        filter: filterForm(request.query, flowsOf(request.receiver)),
        problem,
      }),
      status,
    );
  });

  app.post("*", async (c) => {
    const problem = crossSiteProblem(c.req.raw);
    if (problem !== null) return c.json({ ok: false, message: problem }, 403);
    const text = await textOf(c.req.raw);
    if (text === null) return c.json(REFUSALS.large, 413);
    const { status, body } = await answerScriptRequest(c.env.receiver, c.env.user, redact, text);
    return c.json(body, status);
  });

  app.all("*", (c) => c.text("The console answers GET and POST.", 405, { allow: "GET, HEAD, POST" }));
  app.onError(failureResponse);
  return app;
}

const REFUSALS = { large: { ok: false, message: "The request is too long." } } as const;

/**
 * The text of a body, or null if it is too long. Hono's `bodyLimit` makes a new request of one whose length is
 * not announced, and cannot do so of the requests that `@hono/node-server` hands over.
 */
async function textOf({ headers, body }: Request): Promise<string | null> {
  if (Number(headers.get("content-length")) > MAX_BODY_BYTES) return null;
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let size = 0; reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > MAX_BODY_BYTES) return null;
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function file(c: Context<Env>, name: string): Response {
  const asset = ASSETS.get(name);
  return asset === undefined
    ? c.text("There is no such file.", 404)
    : c.body(asset.text(), 200, { "content-type": asset.type });
}

/** The files of a page with a message, which everybody may see. The script is for people who may see the console. */
function publicAsset({ method, url }: Request): Response | null {
  const name = new URL(url).searchParams.get("asset") ?? "";
  const asset = method === "GET" && name !== "console.js" ? ASSETS.get(name) : undefined;
  if (asset === undefined) return null;
  return new Response(asset.text(), { headers: { ...RESPONSE_HEADERS, "content-type": asset.type } });
}

function messagePage(status: number, title: string, text: string): Response {
  return new Response(String(plainPage(title, text)), {
    status,
    headers: { ...RESPONSE_HEADERS, "content-type": "text/html; charset=UTF-8" },
  });
}

function failureResponse(error: unknown): Response {
  const { status, ...problem } = problemOf(error) ?? { status: 500, message: logError(error) };
  return Response.json({ ok: false, ...problem }, { status, headers: RESPONSE_HEADERS });
}

/** Logs an error of others. Its message may contain anything, so the page shows this one instead. */
function logError(error: unknown): string {
  console.error(`payhooks: the console failed: ${placeOf(error)}`);
  return "Something went wrong. The server's log says where.";
}

/**
 * An error's class and the calls that led to it. Its message is left out: it may quote values that the console must not
 * show.
 */
function placeOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `a value that is not an Error was thrown, of type ${typeof error}`;
    const calls = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
    return [error.name, ...calls.slice(0, 8)].join("\n");
  } catch {
    return "something was thrown that cannot be read";
  }
}
