/** Serves the module named by its argument on a socket: a Worker's default export, or SvelteKit's `POST`. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pathToFileURL } from "node:url";
import { announce, secrets } from "./environment.ts";
import { viaFetch } from "./node-bridge.ts";

interface Module {
  readonly default?: { fetch(request: Request, env: unknown, context: object): Promise<Response> };
  readonly POST?: (event: { readonly request: Request }) => Promise<Response>;
}

const module = (await import(pathToFileURL(process.argv[2] ?? "").href)) as Module;
const handler = (request: Request): Promise<Response> => {
  if (module.default !== undefined) return module.default.fetch(request, secrets(), { waitUntil: () => {} });
  if (module.POST !== undefined) return module.POST({ request });
  throw new Error("the module has no handler");
};
const server = createServer(viaFetch(handler));
server.listen(0, "127.0.0.1", () => announce((server.address() as AddressInfo).port));
