/** Examples whose handlers call a service that answers when the test lets it: they are under way when a signal comes. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Scope } from "../faults/harness/scope.ts";

export class SlowService {
  /** The reference of each call, answered or not. */
  readonly calls: string[] = [];
  /** The environment in which handlers find it. */
  readonly environment: { readonly SLOW_SERVICE: string };
  #waiting: ServerResponse[] | null = [];

  static async start(scope: Scope): Promise<SlowService> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    scope.add(server, (one) => {
      one.closeAllConnections();
      one.close();
    });
    return new SlowService(server);
  }

  private constructor(server: Server) {
    const { port } = server.address() as AddressInfo;
    this.environment = { SLOW_SERVICE: `http://127.0.0.1:${port}/` };
    server.on("request", (request, response) => {
      this.calls.push(request.url?.slice(1) ?? "");
      if (this.#waiting === null) response.end();
      else this.#waiting.push(response);
    });
  }

  /** Answers every call, those that wait and those to come. */
  answer(): void {
    for (const response of this.#waiting ?? []) response.end();
    this.#waiting = null;
  }
}

/** The example, whose deposits call the service at SLOW_SERVICE before they are credited. Nothing else of it is changed. */
export function withSlowDeposits(example: string): string {
  const [before, after, ...others] = example.split("console.log(`credit ");
  if (after === undefined || others.length > 0) throw new Error("the example credits in one place");
  return `${before}await fetch(process.env.SLOW_SERVICE + deposit.referenceId);\n  console.log(\`credit ${after}`;
}
