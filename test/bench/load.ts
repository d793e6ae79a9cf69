/** Load from this process: one connection per request in flight, without HTTP pipelining, as senders do it. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { type Dispatcher, Pool } from "undici";

export interface Target {
  readonly port: number;
  readonly path: string;
}

/** Sends deliveries to one server. */
export interface Sender {
  /** Milliseconds until all are answered 200; anything else throws. `onAnswer` gets what each one took. */
  send(deliveries: readonly SignedDelivery[], onAnswer?: (ms: number) => void): Promise<number>;
  close(): Promise<void>;
}

/** @param awake whether it stays awake while it sends, see {@link stayAwake}. */
export function senderTo({ port, path }: Target, connections: number, awake = false): Sender {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });

  async function send(
    deliveries: readonly SignedDelivery[],
    onAnswer: (ms: number) => void = () => {},
  ): Promise<number> {
    const startedAt = performance.now();
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let delivery = deliveries[next++]; delivery !== undefined; delivery = deliveries[next++]) {
        const from = performance.now();
        await post(pool, path, delivery);
        onAnswer(performance.now() - from);
      }
    };
    const rest = awake ? stayAwake() : null;
    await Promise.all(Array.from({ length: connections }, lane));
    rest?.();
    return performance.now() - startedAt;
  }

  return { send, close: () => pool.destroy() };
}

/**
 * Keeps this process from sleeping until the returned function is called. On one machine it is the server that pays for
 * waking the sender up, with every answer that finds it asleep: 10 to 40 µs that no server pays whose sender is elsewhere,
 * and the more the slower the server is. It takes a whole core, which must have nothing else to do, such as Redis.
 */
function stayAwake(): () => void {
  let awake = true;
  const again = (): void => {
    if (awake) setImmediate(again);
  };
  again();
  return () => {
    awake = false;
  };
}

/** By the lowest interface of the client: the load must not take the time of what it measures. */
function post(pool: Pool, path: string, { rawBody, headers }: SignedDelivery): Promise<void> {
  return new Promise((resolve, reject) => {
    let status = 0;
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart(_controller, code) {
        status = code;
      },
      onResponseData() {},
      onResponseEnd() {
        if (status === 200) resolve();
        else reject(new Error(`answered ${status}`));
      },
      onResponseError(_controller, error) {
        reject(error);
      },
    };
    pool.dispatch({ path, method: "POST", headers, body: rawBody }, handler);
  });
}
