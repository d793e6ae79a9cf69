/** Senders that keep their connections alive and send one delivery after the other, whatever they are answered. */
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import type { SignedDelivery } from "@payhooks/core/testing";

export class BusySenders {
  /** How often each status was answered. */
  readonly answers: Map<number, number> = new Map();
  readonly connections: number;
  readonly #agent: Agent;
  readonly #silent: Socket;
  #isOver = false;
  readonly #sending: Promise<unknown>;

  /** One more connection is opened, on which nothing is ever said. */
  constructor(port: number, path: string, next: () => SignedDelivery, connections = 16) {
    this.connections = connections;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#silent = connect(port, "127.0.0.1").on("error", () => {});
    const lane = async (): Promise<void> => {
      while (!this.#isOver) {
        const status = await this.#post(port, path, next());
        if (status === null) await new Promise((resolve) => setTimeout(resolve, 5));
        else this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
      }
    };
    this.#sending = Promise.all(Array.from({ length: connections }, lane));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#sending;
    this.#agent.destroy();
    this.#silent.destroy();
  }

  /** Null: the connection was refused, or broke. */
  #post(port: number, path: string, { rawBody, headers }: SignedDelivery): Promise<number | null> {
    return new Promise((resolve) => {
      const asked = request({ host: "127.0.0.1", port, path, method: "POST", agent: this.#agent });
      for (const [name, value] of Object.entries(headers)) asked.setHeader(name, value);
      asked.setHeader("content-length", rawBody.byteLength);
      asked.once("error", () => resolve(null));
      asked.once("response", (response) => {
        response.resume();
        response.once("close", () => resolve(response.statusCode ?? null));
      });
      asked.end(rawBody);
    });
  }
}
