/** A Worker whose objects run the contracts of stores and of inboxes on their own storage: the path is the number of the case. */
import type { ObjectStorage } from "@payhooks/core/durable-object";
import { durableObjectCases } from "../contract/durable-object-cases.ts";

interface Env {
  readonly CONTRACT: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

export class Contract {
  readonly #storage: ObjectStorage;

  constructor({ storage }: { readonly storage: ObjectStorage }) {
    this.#storage = {
      sql: storage.sql,
      transactionSync: (work) => storage.transactionSync(work),
      setAlarm: (at) => storage.setAlarm(at),
      deleteAlarm: () => storage.deleteAlarm(),
    };
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const one = durableObjectCases(this.#storage)[Number(pathname.slice(1))];
    if (one === undefined) return new Response("no such case", { status: 404 });
    try {
      await one.run();
      return new Response(`passed: ${one.name}`);
    } catch (error) {
      return new Response(error instanceof Error ? error.stack : String(error), { status: 500 });
    }
  }

  /** Cases move an injected clock: an alarm of theirs means nothing on this one. */
  alarm(): void {}
}

const worker = {
  fetch: (request: Request, { CONTRACT }: Env): Promise<Response> =>
    CONTRACT.getByName(new URL(request.url).pathname).fetch(request),
};

export default worker;
