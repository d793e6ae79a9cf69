/** A small load balancer, as it stands between the service and several processes: it keeps connections alive on both sides. */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Scope } from "./scope.ts";

/** A process behind the balancer. */
interface Backend {
  readonly port: number;
  readonly agent: Agent;
  readonly connections: Set<Socket>;
  /** Answers with 503. */
  refused: number;
  /** Requests whose connection broke before their answer. */
  broken: number;
}

/** Hands requests to processes in turn; to the next one where a process takes no connection. */
export class Balancer {
  readonly #backends: readonly Backend[];
  #port = 0;
  #turn = 0;

  private constructor(ports: readonly number[]) {
    this.#backends = ports.map((port) => ({
      port,
      agent: new Agent({ keepAlive: true }),
      connections: new Set(),
      refused: 0,
      broken: 0,
    }));
  }

  static async start(scope: Scope, ports: readonly number[]): Promise<Balancer> {
    const balancer = new Balancer(ports);
    const server = createServer((incoming, outgoing) => void balancer.#answer(incoming, outgoing));
    server.keepAliveTimeout = 120_000;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    balancer.#port = (server.address() as AddressInfo).port;
    scope.add(server, () => {
      server.close();
      server.closeAllConnections();
      for (const { agent } of balancer.#backends) agent.destroy();
    });
    return balancer;
  }

  get port(): number {
    return this.#port;
  }

  /** Connections to a process that are open now. */
  connectionsTo(port: number): number {
    return this.#backends.find((one) => one.port === port)?.connections.size ?? 0;
  }

  /** Answers with 503 that a process has given so far. */
  refusedBy(port: number): number {
    return this.#backends.find((one) => one.port === port)?.refused ?? 0;
  }

  /** Requests that were on their way to a process when it ended their connection: answered 502. */
  brokenBy(port: number): number {
    return this.#backends.find((one) => one.port === port)?.broken ?? 0;
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    for (let tried = 0; tried < this.#backends.length; tried++) {
      const backend = this.#backends[this.#turn++ % this.#backends.length];
      if (backend === undefined) break;
      const answer = await this.#ask(backend, incoming, body);
      if (answer === "unreachable") continue;
      const { status, text } = answer;
      outgoing.writeHead(status, { "content-type": "application/json" }).end(text);
      return;
    }
    outgoing.writeHead(504).end();
  }

  #ask(
    backend: Backend,
    { method, url, headers }: IncomingMessage,
    body: Buffer,
  ): Promise<{ readonly status: number; readonly text: string } | "unreachable"> {
    return new Promise((resolve) => {
      const { connection: _, host: __, ...rest } = headers;
      const asked = request({
        host: "127.0.0.1",
        port: backend.port,
        agent: backend.agent,
        method,
        path: url,
        headers: rest,
      });
      asked.once("socket", (socket: Socket) => {
        if (backend.connections.has(socket)) return;
        backend.connections.add(socket);
        socket.once("close", () => backend.connections.delete(socket));
      });
      asked.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ECONNREFUSED") {
          resolve("unreachable");
          return;
        }
        backend.broken++;
        resolve({ status: 502, text: "" });
      });
      asked.once("response", (response) => {
        if (response.statusCode === 503) backend.refused++;
        let text = "";
        response.setEncoding("utf8").on("data", (more: string) => {
          text += more;
        });
        response.once("end", () => resolve({ status: response.statusCode ?? 502, text }));
      });
      asked.end(body);
    });
  }
}
