import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { SandboxError } from "../sandbox-error.ts";
import type { ServerEnv } from "./connection.ts";

export interface ListeningServer {
  readonly url: string;
  /** Stops listening, and ends open connections. */
  close(): Promise<void>;
}

export async function listen(app: Hono<ServerEnv>, host: string, port: number): Promise<ListeningServer> {
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  const name = host.includes(":") ? `[${host}]` : host;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      reject(
        cause.code === "EADDRINUSE"
          ? new SandboxError(
              "ERR_PORT_IN_USE",
              `Port ${port} is taken on ${host}. Choose another one, or 0 for any that is free.`,
              { cause },
            )
          : new SandboxError(
              "ERR_CANNOT_LISTEN",
              `Cannot listen on ${name}:${port} (${cause.code ?? cause.message}). Ports below 1024 may need rights; the address must be one of this machine.`,
              { cause },
            ),
      );
    });
    server.listen(port, host, resolve);
  });
  return {
    url: `http://${name}:${portOf(server)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
