/** Load on one process while PostgreSQL has a fault, and what has to come of it. */
import { expect } from "vitest";
import { expectSound as expectSoundAtLeast, type Fault, type Played, playFault } from "./fault-under-load.ts";
import { PostgresServer, type ServerOptions } from "./postgres-server.ts";
import { NetworkProxy } from "./proxy.ts";
import { withScope } from "./scope.ts";
import { BACK_WITHIN_MS } from "./system.ts";

/** The server, and the proxy by which the process reaches it. */
interface PostgresBehindProxy {
  readonly server: PostgresServer;
  readonly proxy: NetworkProxy;
}

export function play(
  name: string,
  fault: Fault<PostgresBehindProxy>,
  {
    faultMs,
    prepare = async () => {},
    ...options
  }: ServerOptions & {
    readonly faultMs?: number;
    /** Before anybody uses the server. */
    readonly prepare?: (server: PostgresServer) => Promise<unknown>;
  } = {},
): Promise<Played> {
  return withScope(async (scope) => {
    const server = await PostgresServer.start(scope, options);
    await prepare(server);
    const proxy = await NetworkProxy.start(scope, server.port);
    const inbox = { kind: "postgres", target: server.urlOf(proxy.port) } as const;
    return playFault(scope, name, inbox, { server, proxy }, fault, faultMs === undefined ? {} : { faultMs });
  });
}

/** And all goes on soon after. */
export function expectSound(played: Played): void {
  expectSoundAtLeast(played);
  expect(played.backAfterMs).toBeLessThanOrEqual(BACK_WITHIN_MS);
}
