/**
 * The merchant that every adapter is given: its receivers, what their handlers do, and a way to ask from outside what
 * became of a delivery. It runs on every runtime, so it imports nothing that one of them lacks.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  createReceiver,
  memoryInbox,
  type Notice,
  parseServiceNames,
  type Receiver,
  Reject,
} from "@payhooks/core";
import { createInbox, type Inbox, memoryStore } from "@payhooks/core/inbox";
import { silent } from "../support/silent.ts";

/** The secrets in the environment. */
export interface Secrets {
  readonly PAY_PUBLIC_KEY: string;
  readonly CONNECT_WEBHOOK_SECRET: string;
  /** The service's names, as JSON. Empty: what the specification calls them. */
  readonly PAY_NAMES: string;
}

/** Receivers by what they are for: `bounded` has a small body and short limits, `closing` is closed on the way, and the store of `away` cannot be reached. */
export type Kind = "plain" | "handled" | "bounded" | "closing" | "away" | "tenants";

/** The path of each kind. `:shop` is the tenant. */
export const PAYMENT_PATHS: Readonly<Record<Kind, string>> = {
  plain: "/callbacks/pay",
  handled: "/handled/pay",
  bounded: "/bounded/pay",
  closing: "/closing/pay",
  away: "/away/pay",
  tenants: "/shops/:shop/pay",
};
/** The paths of a receiver's probes. */
export const PROBE_PATHS = {
  plain: { live: "/live", ready: "/ready" },
  closing: { live: "/closing/live", ready: "/closing/ready" },
  away: { live: "/away/live", ready: "/away/ready" },
} as const;
export const PROBED = ["plain", "closing", "away"] as const;
export const CONNECT_PATH = "/webhooks/connect";
export const TRAP_PATH = "/traps/";
/** The path of the plain receiver below the middleware that gives each request a context, named by {@link REQUEST_HEADER}. */
export const CONTEXT_PATH = "/in-a-context/pay";
export const REQUEST_HEADER = "x-request";
export const APP_PATH = "/app/double";
export const CONTROL_PATH = "/control/";

export const BOUNDED = { maxBodyBytes: 4_096, bodyTimeoutMs: 400 } as const;

interface State {
  readonly requests: AsyncLocalStorage<string>;
  readonly effects: string[];
  readonly receivers: Map<Kind, Receiver>;
}

/** Bundlers may load this module more than once in a process; what it has seen is one list. */
const KEY = Symbol.for("payhooks.conformance");
const home = globalThis as { [KEY]?: State };
home[KEY] ??= { requests: new AsyncLocalStorage(), effects: [], receivers: new Map() };
const state: State = home[KEY];

/** Answers a request in a context of its own, as a merchant's middleware does who keeps a tenant or a span there. */
export function inContextOf<T>(request: string | null | undefined, answer: () => T): T {
  return state.requests.run(request ?? "a request without a name", answer);
}

/**
 * The receiver of a kind, made when it is first asked for. `elsewhere`: nothing runs in its process but what a hint says, as on Lambda;
 * here the hint comes back at once.
 */
export function receiverOf(kind: Kind, secrets: Secrets, where: "here" | "elsewhere" = "here"): Receiver {
  const known = state.receivers.get(kind);
  if (known !== undefined) return known;
  const made = makeReceiver(kind, secrets, where);
  state.receivers.set(kind, made);
  return made;
}

/** An inbox whose store is away, and says where it would be. */
function awayInbox(): Inbox {
  const open = (): Promise<never> => {
    const where = { syscall: "connect", address: "10.1.2.3", port: 6379 };
    return Promise.reject(Object.assign(new Error("no way"), { code: "ECONNREFUSED", ...where }));
  };
  return createInbox({ ...memoryStore(), immediate: false, open });
}

function makeReceiver(
  kind: Kind,
  { PAY_PUBLIC_KEY, CONNECT_WEBHOOK_SECRET, PAY_NAMES }: Secrets,
  where: "here" | "elsewhere",
): Receiver {
  const { effects } = state;
  const isHandled = kind === "handled";
  const receiver: Receiver = createReceiver({
    ...(PAY_NAMES !== "" && { names: parseServiceNames(PAY_NAMES) }),
    payments: {
      publicKey:
        kind === "tenants"
          ? ({ tenant }) => (tenant === "shop-7" ? { tenant, keys: PAY_PUBLIC_KEY } : null)
          : PAY_PUBLIC_KEY,
    },
    connect: { secret: CONNECT_WEBHOOK_SECRET },
    inbox: kind === "away" ? awayInbox() : memoryInbox(),
    ack: isHandled ? "handled" : "enqueued",
    ...(where === "elsewhere" && !isHandled
      ? { run: where, notifyWorker: async (eventId: string) => void (await receiver.run(eventId)) }
      : {}),
    alerts: { threshold: 1_000 },
    logger: silent,
    ...(kind === "bounded" ? { limits: BOUNDED } : {}),
  });
  const seen = async (event: { readonly message?: string }, { attempt }: { attempt: number }) => {
    effects.push(`ran ${JSON.stringify(event)}`);
    if (event.message === "tell the context")
      effects.push(`handled in the context of ${state.requests.getStore()}`);
    if (event.message === "fail once" && attempt === 1) throw new Error("as told");
    if (event.message === "reject") throw new Reject("as told");
  };
  // A retry by itself would come after the test.
  const options = { backoffMs: () => 3_600_000 };
  receiver.onDeposit({ SUCCESS: seen, FAILED: seen, PENDING: seen }, options);
  receiver.onSettlementApproved(async (event) => void effects.push(`ran ${JSON.stringify(event)}`), options);
  receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  receiver.observe((notice) => {
    const request = state.requests.getStore();
    if (request !== undefined) effects.push(`an observer ran in the context of ${request}`);
    const told = tell(notice);
    if (told !== null) effects.push(told);
  });
  return receiver;
}

/** The effect in a notice; times and addresses do not count. */
function tell(notice: Notice): string | null {
  switch (notice.type) {
    case "accepted":
    case "duplicate":
    case "stale":
      return `${notice.type} ${notice.tenant}${notice.event} ${notice.status} ${notice.id}`;
    case "held":
      return `held ${notice.reason}`;
    case "refused":
      return `refused ${notice.httpStatus} ${notice.code}${hintIn(notice.why)}`;
    case "retry":
      return `retry ${notice.handler}`;
    case "finished":
      return `finished ${notice.id}`;
    default:
      return null;
  }
}

/** The header that the signature was in, if the refusal names one. */
function hintIn(why: string): string {
  const [, header] = /the signature in (\S+) is genuine/.exec(why) ?? [];
  return header === undefined ? "" : `: it is in ${header}`;
}

/** Answers the test's own questions, below {@link CONTROL_PATH}. */
export async function control(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  switch (pathname.slice(CONTROL_PATH.length)) {
    case "effects":
      return Response.json(state.effects);
    case "close":
      await state.receivers.get("closing")?.close();
      return Response.json("closed");
    default:
      return new Response(`nothing at ${pathname}`, { status: 404 });
  }
}

/** The application's own work on its JSON. */
export function double(body: unknown): { readonly doubled: number } {
  return { doubled: (body as { n: number }).n * 2 };
}
