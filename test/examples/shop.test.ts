/** The shop: orders, ledger, inbox and effects in one PostgreSQL, and a service that sends every callback twice. */
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { connectEvent, type SignedDelivery, signConnectWebhook, signers } from "@payhooks/core/testing";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RunningProgram } from "../e2e/program.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import { freePort } from "../support/free-port.ts";

const scope = new Scope();
let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

const SECRETS = {
  connect: "whsec_of_the_service_0123456789",
  cards: "whsec_of_the_cards_0123456789",
  courier: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
} as const;

interface Books {
  readonly orders: readonly { readonly reference: string; readonly state: string }[];
  readonly accounts: readonly { readonly account: string; readonly balance: string }[];
}

interface Sent {
  readonly attempts: readonly { readonly answer: { readonly status: number } | null }[];
}

/** The shop as a process, on this address. */
async function start(port: number, sandboxPort: number): Promise<RunningProgram> {
  const program = new RunningProgram("examples/shop/src/shop.ts", [], {
    DATABASE_URL: server.url,
    CONNECT_WEBHOOK_SECRET: SECRETS.connect,
    CARDS_SECRET: SECRETS.cards,
    COURIER_SECRET: SECRETS.courier,
    PORT: String(port),
    SANDBOX_PORT: String(sandboxPort),
  });
  scope.add(program, (one) => one.kill());
  await program.until(/the shop is open/);
  return program;
}

async function post(port: number, path: string, body: unknown = {}): Promise<number> {
  const headers = { "content-type": "application/json" };
  const url = `http://127.0.0.1:${port}${path}`;
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).status;
}

it("the example takes an order, books its payment once, and its refund once", {
  timeout: 90_000,
}, async () => {
  const [port, sandboxPort] = [await freePort(), await freePort()];
  const books = async (): Promise<Books> =>
    (await fetch(`http://127.0.0.1:${port}/books`)).json() as Promise<Books>;
  /** The shop's answers to the copies of each callback. */
  const answers = async (): Promise<readonly number[][]> => {
    const response = await fetch(`http://127.0.0.1:${sandboxPort}/sandbox/deliveries`);
    const { data } = (await response.json()) as { readonly data: readonly Sent[] };
    return data.map(({ attempts }) => attempts.map(({ answer }) => answer?.status ?? 0));
  };
  const program = await start(port, sandboxPort);
  for (const reference of ["order-1", "order-2"]) {
    expect(await post(port, "/orders", { reference, amount: "10.50" })).toBe(201);
  }
  await program.until(/order-1 is paid/);
  await program.until(/order-2 is paid/);
  expect(await post(port, "/orders/order-1/refund")).toBe(202);
  await program.until(/order-1 is refunded/);
  const twice = [200, 200];
  await expect.poll(answers).toEqual([twice, twice, twice]);
  program.signal("SIGTERM");
  expect(await program.exitCode).toBe(0);
  expect(program.output.match(/ is (?:paid|refunded)/g)).toHaveLength(3);
  // SQL shows each delivery, the work done for it, and its result.
  const [events] = await server.tell(
    "SELECT count(*)::int AS count, bool_and(state = 'finished') AS done FROM payhooks.events",
  );
  const [effects] = await server.tell("SELECT count(*)::int AS count FROM payhooks_effects");
  const [ledger] = await server.tell("SELECT sum(amount)::float8 AS sum, count(*)::int AS count FROM ledger");
  expect({ events, effects, ledger }).toEqual({
    events: { count: 3, done: true },
    effects: { count: 3 },
    ledger: { sum: 0, count: 6 },
  });
  const again = await start(port, sandboxPort);
  expect(await books()).toEqual({
    orders: [
      { reference: "order-1", state: "refunded" },
      { reference: "order-2", state: "paid" },
    ],
    accounts: [
      { account: "cash", balance: "10.500000" },
      { account: "customers", balance: "-10.500000" },
    ],
  });
  again.signal("SIGTERM");
  expect(await again.exitCode).toBe(0);
});

it("hears from the service and two other senders on one receiver, each event once", {
  timeout: 90_000,
}, async () => {
  const port = await freePort();
  let program = await start(port, await freePort());
  expect(await post(port, "/orders", { reference: "order-c", amount: "25.50", by: "card" })).toBe(201);
  const account = connectEvent("connected_account.approved", { data: { id: "cm_7" } });
  const charge = { amount: 2_550, metadata: { order: "order-c" } };
  const cards = signers.stripe({ secret: SECRETS.cards });
  const courier = signers.standardWebhooks({ secret: SECRETS.courier });
  const deliveries: readonly (readonly [path: string, SignedDelivery])[] = [
    ["/webhooks/connect", signConnectWebhook(account, SECRETS.connect)],
    ["/webhooks/cards", cards("charge.succeeded", charge)],
    ["/webhooks/courier", courier("parcel.delivered", { order: "order-c" })],
  ];
  const send = async (): Promise<number[]> =>
    Promise.all(
      deliveries.map(async ([path, { headers, rawBody }]) => {
        const request = { method: "POST", headers, body: rawBody };
        return (await fetch(`http://127.0.0.1:${port}${path}`, request)).status;
      }),
    );
  const forged = signers.stripe({ secret: "whsec_of_a_stranger_0123456789" })("charge.succeeded", charge);
  const refused = { method: "POST", headers: forged.headers, body: forged.rawBody };
  expect((await fetch(`http://127.0.0.1:${port}/webhooks/cards`, refused)).status).toBe(401);
  // Each comes three times, and the process is killed as soon as it has answered.
  expect(await send()).toEqual([200, 200, 200]);
  expect(await send()).toEqual([200, 200, 200]);
  program.kill();
  await program.exitCode;
  program = await start(port, await freePort());
  expect(await send()).toEqual([200, 200, 200]);
  const flows =
    "SELECT flow FROM payhooks.events WHERE flow <> 'payments' AND state = 'finished' ORDER BY flow";
  await until("all have run", async () => (await server.tell(flows)).length === 3, { withinMs: 60_000 });
  expect(await server.tell(flows)).toEqual([{ flow: "cards" }, { flow: "connect" }, { flow: "courier" }]);
  expect(await server.tell("SELECT state, delivered FROM orders WHERE reference = 'order-c'")).toEqual([
    { state: "paid", delivered: 1 },
  ]);
  expect(await server.tell("SELECT state, decisions FROM sellers WHERE account = 'cm_7'")).toEqual([
    { state: "approved", decisions: 1 },
  ]);
  expect(await server.tell("SELECT amount::float8 AS amount FROM ledger WHERE account = 'cards'")).toEqual([
    { amount: 25.5 },
  ]);
  program.signal("SIGTERM");
  expect(await program.exitCode).toBe(0);
});

it.each(["SIGTERM", "SIGINT"] as const)(
  "lets a handler end that is under way, although a connection says nothing: %s",
  { timeout: 60_000 },
  async (signal) => {
    const port = await freePort();
    const program = await start(port, await freePort());
    const silent = scope.add(connect(port, "127.0.0.1"), (one) => one.destroy());
    await new Promise((resolve) => silent.once("connect", resolve));
    const reference = `slow-${signal}`;
    const clerk = scope.add(new Pool({ connectionString: server.url, max: 1 }), (pool) => pool.end());
    // A clerk has the ledger open when the payment comes.
    await clerk.query("BEGIN; LOCK TABLE ledger");
    expect(await post(port, "/orders", { reference, amount: "10.50" })).toBe(201);
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await until("the handler waits", async () => (await server.tell(waiting)).length === 1);
    program.signal(signal);
    // As npm does after Ctrl-C.
    program.signal(signal);
    await until("it closes", () =>
      post(port, "/").then(
        () => false,
        () => true,
      ),
    );
    expect(program.output).not.toContain("is paid");
    await clerk.query("COMMIT");
    expect(await program.exitCode, program.output).toBe(0);
    expect(program.output.match(/ is paid/g)).toHaveLength(1);
    const [order] = await server.tell(`SELECT state FROM orders WHERE reference = '${reference}'`);
    const left = await server.tell("SELECT id FROM payhooks.events WHERE state <> 'finished'");
    expect({ order, left }).toEqual({ order: { state: "paid" }, left: [] });
  },
);

it("the example is a shop in less than 160 lines", () => {
  const folder = "examples/shop/src";
  const lines = readdirSync(folder).flatMap((file) => readFileSync(`${folder}/${file}`, "utf8").split("\n"));
  expect(lines.length).toBeLessThan(160);
});
