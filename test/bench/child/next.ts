/** Route handlers of Next.js in its production build, behind its own way to them. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Receiver } from "@payhooks/core";
import type { Scheme } from "../protocol.ts";
import { type Framework, HOST, listening } from "./framework.ts";
import type { Check } from "./inline.ts";

type NextVariant =
  | { readonly check: Check | null }
  | { readonly receiver: Receiver; readonly scheme: Scheme };

/** The actions of the application's route, by the first part of the path. */
export type NextVariants = ReadonlyMap<string, NextVariant>;

interface Application {
  prepare(): Promise<void>;
  getRequestHandler(): RequestListener;
}
type StartNext = (options: { readonly dev: boolean; readonly dir: string }) => Application;

/** @param folder of the application, built, or null where none is. One serves all variants: it takes a second to start. */
export function onNext(folder: string | null): Framework {
  const variants = new Map<string, NextVariant>();
  Object.assign(globalThis, { nextVariants: variants satisfies NextVariants });
  let application: Promise<RequestListener> | null = null;

  async function listen(variant: NextVariant): Promise<Server> {
    if (folder === null) throw new Error("the Next.js application was not built");
    application ??= startNext(folder);
    const handle = await application;
    const name = String(variants.size);
    variants.set(name, variant);
    const server = createServer((request, response) => {
      request.url = `/${name}${request.url}`;
      handle(request, response);
    });
    return listening(server.listen(0, HOST));
  }

  return {
    byHand: (_path, check) => listen({ check }),
    ours: (_path, scheme, receiver) => listen({ receiver, scheme }),
  };
}

async function startNext(dir: string): Promise<RequestListener> {
  // Without its types, which say of every package's environment what is so in an application of Next.js only.
  const next = createRequire(join(dir, "next.config.ts"))("next") as StartNext;
  const application = next({ dev: false, dir });
  await application.prepare();
  return application.getRequestHandler();
}
