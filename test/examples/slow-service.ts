/** Examples whose handlers call a service that answers when the test lets it: they are under way when a signal comes. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Scope } from "../faults/harness/scope.ts";

export class SlowService {
  /** The reference of each call, answered or not. */
  readonly calls: string[] = [];
  readonly url: string;
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
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
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

  /** The example, whose deposits now call this service before they are credited. Nothing else of it is changed. */
  calledBy(example: string): string {
    const [before, after, ...others] = example.split("console.log(`credit ");
    if (after === undefined || others.length > 0) throw new Error("the example credits in one place");
    return `${before}await fetch("${this.url}" + deposit.referenceId);\n  console.log(\`credit ${after}`;
  }
}
