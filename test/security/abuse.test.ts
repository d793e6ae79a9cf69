/** Attacks a server in all ways at once and over sockets: afterwards it is as it was before. */
import { gzipSync } from "node:zlib";
import { createReceiver, memoryInbox, type Notice, type Receiver } from "@payhooks/core";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, chunked, exchange, type HeaderLines, request, Wire } from "../e2e/wire.ts";
import { silent } from "../support/silent.ts";
import { PATHS } from "./fuzz/mutations.ts";
import { ADAPTERS } from "./fuzz/targets.ts";
import { report } from "./report.ts";

const ON = ["Express 5", "Fastify", "Hono", "fetch"];
const keys = createTestKeys();
const SECRET = "whsec_abuse_0123456789abcdef";
const BOUND = { inFlight: 32, resolving: 40, held: 20, bodyTimeoutMs: 300, records: 100 };
const JSON_TYPE: HeaderLines = [["Content-Type", "application/json"]];
const FORGED: HeaderLines = [...JSON_TYPE, ["X-Connect-Signature", `sha256=${"0".repeat(64)}`]];

/** A server, and what was seen of it. */
interface AttackedServer {
  readonly receiver: Receiver;
  readonly port: number;
  readonly ran: string[];
  readonly notices: Notice[];
  /** The hints that the resolver of payments got. */
  readonly asked: string[];
  /** Lets the look-ups go that wait: those of merchants whose name begins with "gated". */
  open(): void;
  stop(): Promise<void>;
}

async function startServer(adapter: string): Promise<AttackedServer> {
  const start = ADAPTERS[adapter];
  if (start === undefined) throw new Error(`no adapter is called ${adapter}`);
  const [ran, notices, asked]: [string[], Notice[], string[]] = [[], [], []];
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const receiver = createReceiver({
    payments: {
      async publicKey({ merchantId = "" }) {
        asked.push(merchantId);
        if (merchantId.startsWith("gated")) await gate;
        return /^(good|gated)/.test(merchantId) ? { tenant: merchantId, keys: keys.publicKey } : null;
      },
    },
    connect: { secret: SECRET },
    inbox: memoryInbox({ maxRecords: BOUND.records }),
    limits: {
      maxInFlight: BOUND.inFlight,
      maxResolving: BOUND.resolving,
      maxHeld: BOUND.held,
      bodyTimeoutMs: BOUND.bodyTimeoutMs,
    },
    logger: silent,
  });
  receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId));
  receiver.onSettlementApproved(({ idempotency_key }) => void ran.push(idempotency_key));
  receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  receiver.observe((notice) => notices.push(notice));
  await receiver.start();
  const { port, close } = await start(receiver);
  const stop = async (): Promise<void> => {
    open();
    await close();
    await receiver.close({ graceMs: 0 });
  };
  return { receiver, port, ran, notices, asked, open: () => open(), stop };
}

const callback = (merchantId: string): Buffer => {
  const { rawBody } = signPaymentCallback(callbackFields({ merchantId }), keys.privateKey);
  return request("POST", PATHS.payments, JSON_TYPE, rawBody);
};
const webhook = (body: Uint8Array | object): Buffer => {
  const { rawBody, headers } = signConnectWebhook(body, SECRET);
  return request("POST", PATHS.connect, Object.entries(headers), rawBody);
};
const forged = (body: Uint8Array, headers: HeaderLines = FORGED): Buffer =>
  request("POST", PATHS.connect, headers, body);
const codeOf = ({ status, body }: Answer): string =>
  `${status} ${/ERR_\w+/.exec(body)?.[0] ?? body}`.trimEnd();

/** One request on a connection that the server has to close, and how it was answered. */
async function untilClosed(port: number, bytes: Uint8Array, drip?: () => Uint8Array): Promise<string> {
  const wire = await Wire.open(port);
  await wire.write(bytes);
  const dripping = drip === undefined ? undefined : setInterval(() => void wire.write(drip()), 40);
  const answer = await wire.answer();
  clearInterval(dripping);
  await wire.closed;
  wire.destroy();
  return codeOf(answer);
}

/** Bodies that do not come, or byte by byte. */
function slowBodies(port: number): readonly Promise<string>[] {
  const head = request("POST", PATHS.connect, [...FORGED, ["Content-Length", "60000"]]);
  const chunks = request("POST", PATHS.connect, [...FORGED, ["Transfer-Encoding", "chunked"]]);
  return [
    untilClosed(port, head),
    untilClosed(port, head, () => Buffer.from(" ")),
    untilClosed(port, chunks, () => Buffer.from("1\r\n \r\n")),
  ];
}

const ANNOUNCED = request("POST", PATHS.connect, [...FORGED, ["Content-Length", "999999999999"]]);

/** Names whose hashes are the same where a hash is made as Java makes it. */
const alike = Array.from({ length: 12 }, (_, bit) => bit);
const names = Array.from({ length: 2_000 }, (_, n) =>
  alike.map((bit) => ((n >> bit) & 1 ? "Aa" : "BB")).join(""),
);
const wide = Buffer.from(`{${names.map((name) => `"${name}":1`).join(",")}}`);
const deep = Buffer.from(`{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`);
const numbered = Buffer.from(`{${Array.from({ length: 5_000 }, (_, n) => `"${n}":0`).join(",")}}`);

/** Slow bodies begin at all servers at once, and go on while the rest is tried. */
const servers = new Map<
  string,
  { readonly server: AttackedServer; readonly lingering: readonly Promise<string>[] }
>();
beforeAll(async () => {
  for (const adapter of ON) {
    const server = await startServer(adapter);
    const lingering = Array.from({ length: 10 }, () => slowBodies(server.port)).flat();
    servers.set(adapter, { server, lingering: [...lingering, untilClosed(server.port, ANNOUNCED)] });
  }
});
afterAll(async () => {
  for (const { server } of servers.values()) await server.stop();
});

describe.each(ON)("a server with %s", (adapter) => {
  let server: AttackedServer;
  let lingering: readonly Promise<string>[] = [];
  let idle: readonly Wire[] = [];
  let cases = 0;
  beforeAll(async () => {
    const begun = servers.get(adapter);
    if (begun === undefined) throw new Error(`${adapter} was not started`);
    ({ server, lingering } = begun);
    idle = await Promise.all(Array.from({ length: 500 }, () => Wire.open(server.port)));
  });
  afterAll(() => {
    for (const wire of idle) wire.destroy();
    report({ proof: `abuse: ${adapter}`, cases, note: "500 idle sockets meanwhile" });
  });
  const send = async (bytes: Uint8Array): Promise<string> => {
    cases++;
    return codeOf(await exchange(server.port, bytes));
  };
  /** How often each was answered. */
  const counted = (codes: readonly string[]): Record<string, number> =>
    Object.fromEntries([...new Set(codes)].map((code) => [code, codes.filter((one) => one === code).length]));

  it("refuses bodies that are too large or compressed, and reads no more of them", async () => {
    const large = Buffer.alloc(1_000_000, " ");
    const streamed = request(
      "POST",
      PATHS.connect,
      [...FORGED, ["Transfer-Encoding", "chunked"]],
      chunked([large]),
    );
    const bomb = forged(gzipSync(Buffer.alloc(10_000_000)), [...FORGED, ["Content-Encoding", "gzip"]]);
    const refused = [forged(large), streamed].map((bytes) => untilClosed(server.port, bytes));
    cases += refused.length;
    expect(counted(await Promise.all(refused))).toEqual({ "413 ERR_BODY_TOO_LARGE": 2 });
    expect(await send(bomb)).toBe("415 ERR_CONTENT_ENCODING");
  });

  it("takes no harm from bodies that are deep, wide or alike in all their names, signed or not", async () => {
    const hostile = [deep, wide, numbered];
    for (const body of hostile) {
      expect(await send(forged(body))).toBe("400 ERR_SIGNATURE_INVALID");
      expect(await send(webhook(body))).toBe('200 {"received":true}');
    }
    // If the signature is inside the body, a body that would take long to parse is not parsed.
    const unsigned = (body: Uint8Array): Buffer => request("POST", PATHS.payments, JSON_TYPE, body);
    for (const body of hostile) expect(await send(unsigned(body))).toBe("400 ERR_BODY_NOT_JSON");
    const parsed = [`{"a":${"[".repeat(4_000)}${"]".repeat(4_000)}}`, `{"a":"${"[{,".repeat(20_000)}"}`];
    for (const body of parsed)
      expect(await send(unsigned(Buffer.from(body)))).toBe("401 ERR_SIGNATURE_MISSING");
  });

  it("refuses floods of headers by itself, and reads many of them", async () => {
    const lines = (count: number, length: number): HeaderLines =>
      Array.from({ length: count }, (_, n) => [`X-${n}`, "y".repeat(length)] as const);
    expect(await send(forged(wide, [...FORGED, ...lines(400, 8)]))).toBe("400 ERR_SIGNATURE_INVALID");
    for (const flood of [lines(10, 4_000), lines(3_000, 8)]) {
      cases++;
      expect(await untilClosed(server.port, forged(wide, [...FORGED, ...flood]))).toMatch(/^431/);
    }
  });

  it("raises one alert, not one per failure", async () => {
    const forgeries = await Promise.all(Array.from({ length: 100 }, () => send(forged(Buffer.from("{}")))));
    expect(counted(forgeries)).toEqual({ "400 ERR_SIGNATURE_INVALID": 100 });
    const alerts = server.notices.filter((notice) => notice.type === "alert" && notice.flow === "connect");
    expect(alerts.length).toBeGreaterThan(0);
    expect(alerts.length).toBeLessThanOrEqual(2); // "all-failing" and "probing"
  });

  it("asks its resolver once for each unknown merchant, and not for good ones that it knows", async () => {
    expect(await send(callback("good"))).toBe('200 {"received":true}');
    const unknown = Array.from({ length: 200 }, (_, n) => callback(`unknown-${n % 50}`));
    expect(counted(await Promise.all(unknown.map(send)))).toEqual({ "401 ERR_SIGNATURE_INVALID": 200 });
    expect(await send(callback("good"))).toBe('200 {"received":true}');
    expect(server.asked).toHaveLength(51);
  });

  it("holds no more than it may, and goes on with good deliveries", async () => {
    const bodies = Array.from({ length: BOUND.held * 2 }, (_, n) => ({
      ...connectEvent(),
      event: `none.${n}`,
    }));
    const codes: string[] = [];
    for (const body of bodies) codes.push(await send(webhook(body)));
    const { "503 ERR_HELD_FULL": refused = 0 } = counted(codes);
    expect(refused).toBeGreaterThanOrEqual(BOUND.held);
    expect((await server.receiver.health()).held).toBe(BOUND.held);
    expect(await send(webhook(connectEvent()))).toBe('200 {"received":true}');
  });

  it("has closed the sockets of bodies that did not come, or byte by byte, and of one too large to come", async () => {
    cases += lingering.length;
    expect(counted(await Promise.all(lingering))).toEqual({
      "408 ERR_BODY_TIMEOUT": 30,
      "413 ERR_BODY_TOO_LARGE": 1,
    });
  });

  it("after the attack, the resolver takes as many deliveries as before, every genuine one runs, and nothing stays behind", async () => {
    const before = server.ran.length;
    const gated = Array.from({ length: BOUND.resolving }, (_, n) => send(callback(`gated-${n}`)));
    const waiting = (): number => server.asked.filter((name) => name.startsWith("gated")).length;
    await expect.poll(waiting).toBe(BOUND.resolving);
    expect(await send(callback("gated-too"))).toBe("503 ERR_OVERLOADED");
    expect(await send(callback("good"))).toBe('200 {"received":true}');
    expect(await send(webhook(connectEvent()))).toBe('200 {"received":true}');
    server.open();
    // All of them go on at once, and no more than may be in flight. The service sends the others again.
    const answers = gated.map(async (answer, n) =>
      (await answer) === "503 ERR_OVERLOADED" ? send(callback(`gated-${n}`)) : answer,
    );
    expect(counted(await Promise.all(answers))).toEqual({ '200 {"received":true}': BOUND.resolving });
    expect(await send(callback("gated-too"))).toBe('200 {"received":true}');
    await expect.poll(() => server.ran.length).toBe(before + BOUND.resolving + 3);
    await expect
      .poll(() => server.receiver.health())
      .toMatchObject({ waiting: 0, running: 0, held: BOUND.held });
    expect(new Set(server.ran).size).toBe(server.ran.length);
  });
});
