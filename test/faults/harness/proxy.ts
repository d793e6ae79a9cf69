import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../../support/free-port.ts";
import type { Scope } from "./scope.ts";

/** A TCP proxy on loopback, which plays the faults of a network. */
export class NetworkProxy {
  readonly port: number;
  /** The target of new connections. */
  target: number;
  /** Added to a round trip: half on the way there, half on the way back. */
  latencyMs = 0;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #refuses = false;

  private constructor(port: number, target: number) {
    this.port = port;
    this.target = target;
    this.#server = createServer((near) => this.#link(near));
  }

  static async start(scope: Scope, target: number): Promise<NetworkProxy> {
    const proxy = scope.add(new NetworkProxy(await freePort(), target), (one) => one.close());
    await new Promise<void>((resolve) => proxy.#server.listen(proxy.port, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Breaks every connection with a reset. */
  reset(): void {
    for (const link of this.#links) link.reset();
  }

  /** From now on nothing passes on the present connections, and they stay open. New ones work. */
  halfOpen(): void {
    for (const link of this.#links) link.mute = true;
  }

  /** Resets the present connections and every new one. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
    if (refuses) this.reset();
  }

  async close(): Promise<void> {
    this.reset();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #link(near: Socket): void {
    if (this.#refuses) {
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    const link: Link = {
      mute: false,
      reset: () => {
        near.resetAndDestroy();
        far.resetAndDestroy();
      },
    };
    this.#links.add(link);
    const forward = (from: Socket, to: Socket): void => {
      const late: { readonly chunk: Buffer; readonly dueAt: number }[] = [];
      let lastDueAt = 0;
      // Bytes keep their order, even if the latency has changed in between.
      const flush = (): void => {
        for (let [first] = late; first !== undefined && first.dueAt <= performance.now(); [first] = late) {
          late.shift();
          if (!link.mute && !to.destroyed) to.write(first.chunk);
        }
        const [next] = late;
        if (next !== undefined) setTimeout(flush, Math.max(1, next.dueAt - performance.now()));
      };
      from.setNoDelay(true);
      from.on("data", (chunk) => {
        if (link.mute) return;
        if (this.latencyMs === 0 && late.length === 0) {
          to.write(chunk);
          return;
        }
        lastDueAt = Math.max(lastDueAt, performance.now() + this.latencyMs / 2);
        late.push({ chunk, dueAt: lastDueAt });
        if (late.length === 1) setTimeout(flush, lastDueAt - performance.now());
      });
      from.on("error", () => {});
      from.on("close", () => {
        this.#links.delete(link);
        if (!link.mute) to.destroy();
      });
    };
    forward(near, far);
    forward(far, near);
  }
}

interface Link {
  mute: boolean;
  reset(): void;
}
