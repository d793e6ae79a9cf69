/**
 * The adapters. To add one, write its package and its row here. The row says what its manifest does not: how it is tried, and what its
 * pages show. The tests of packages, documents, runtimes and conformance read it.
 */
import {
  EXPRESS_TRAPS,
  FASTIFY_TRAPS,
  HONO_TRAPS,
  NESTJS_EXPRESS_TRAPS,
  NESTJS_FASTIFY_TRAPS,
} from "./conformance/traps.ts";

/** A merchant's program: `import <what> from <where>` lines, and a body that prints one line. */
export interface Program {
  readonly imports: readonly (readonly [what: string, from: string])[];
  readonly body: string;
  readonly prints: string;
}

/** A server of `test/conformance/servers`, with its arguments. */
export interface ConformanceServer {
  readonly name: string;
  readonly server: readonly [file: string, ...args: readonly string[]];
  readonly traps: readonly string[];
  /** True if its platform may freeze the process after an answer. */
  readonly runsAfterResponse?: boolean;
  /** Cases that cannot come about there, by name, with the reason. */
  readonly unreachable?: Readonly<Record<string, string>>;
}

/** The gateway reads a request to its end before it calls the function, and the connection is its own. A queue calls the handlers. */
const BEHIND_A_GATEWAY = {
  traps: [],
  runsAfterResponse: true,
  unreachable: {
    "a body that never comes to its end": "the gateway waits for the end",
    "a sender that goes away in the middle of the body": "the gateway calls no function for it",
    "requests at once, each with a context of its own": "handlers run in another function than the request's",
  },
} as const;

export interface Adapter {
  /** Its folder in `packages`, and the name of its package after `@payhooks/`. */
  readonly name: string;
  /** The heading of its options in the reference. */
  readonly title: string;
  /** The type of these options. */
  readonly options: string;
  /** The packages of its users that it asks for. */
  readonly peers: readonly string[];
  /** The packages that are installed with it, with the reason. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** The files that are the TypeScript of its README, in order. */
  readonly examples: readonly string[];
  /** True if a mount starts the receiver. */
  readonly starts: boolean;
  /** True if a Worker can load it. */
  readonly onWorkers: boolean;
  /** The servers with which `test/conformance/node.test.ts` tries it. Next.js is built first, in a test of its own. */
  readonly servers: readonly ConformanceServer[];
  /** How the packed package is tried. */
  readonly program: Program;
}

export const ADAPTERS: readonly Adapter[] = [
  {
    name: "express",
    title: "Express",
    options: "MountOptions",
    peers: ["express"],
    dependencies: { "raw-body": "bounded reading of a body's bytes; Express brings the same package" },
    examples: ["examples/express/src/quickstart.ts"],
    starts: true,
    onWorkers: false,
    servers: [
      { name: "Express 5", server: ["express.ts", "5"], traps: EXPRESS_TRAPS },
      { name: "Express 4", server: ["express.ts", "4"], traps: EXPRESS_TRAPS },
    ],
    program: {
      imports: [
        ["{ createReceiver }", "@payhooks/core"],
        ["{ connectWebhooks }", "@payhooks/express"],
        ["express", "express"],
      ],
      body: `
          const receiver = createReceiver({ connect: { secret: process.env.CONNECT_WEBHOOK_SECRET } });
          receiver.onSettlementApproved(async () => {});
          const app = express();
          app.use("/webhooks/connect", connectWebhooks(receiver));
          const server = app.listen(0, async () => {
            const address = server.address();
            const port = typeof address === "object" && address ? address.port : 0;
            const headers = { "content-type": "application/json" };
            const unsigned = { method: "POST", headers, body: "{}" };
            const response = await fetch(\`http://127.0.0.1:\${port}/webhooks/connect\`, unsigned);
            console.log(response.status);
            server.close();
            await receiver.close();
          });
        `,
      prints: "400",
    },
  },
  {
    name: "fastify",
    title: "Fastify",
    options: "MountOptions",
    peers: ["fastify"],
    dependencies: { "raw-body": "bounded reading of a body's bytes" },
    examples: ["examples/fastify/src/index.ts"],
    starts: true,
    onWorkers: false,
    servers: [{ name: "Fastify", server: ["fastify.ts"], traps: FASTIFY_TRAPS }],
    program: {
      imports: [
        ["{ createReceiver }", "@payhooks/core"],
        ["{ connectWebhooks }", "@payhooks/fastify"],
        ["{ fastify }", "fastify"],
      ],
      body: `
          const receiver = createReceiver({ connect: { secret: process.env.CONNECT_WEBHOOK_SECRET } });
          receiver.onSettlementApproved(async () => {});
          const app = fastify();
          app.register(connectWebhooks(receiver), { prefix: "/webhooks/connect" });
          const headers = { "content-type": "application/json" };
          app.inject({ method: "POST", url: "/webhooks/connect", headers, payload: "{}" }).then(async (answer) => {
            console.log(answer.statusCode);
            await app.close();
            await receiver.close();
          });
        `,
      prints: "400",
    },
  },
  {
    name: "hono",
    title: "Hono",
    options: "MountOptions",
    peers: ["hono"],
    dependencies: {},
    examples: ["examples/hono/src/index.ts"],
    starts: true,
    onWorkers: true,
    servers: [{ name: "Hono", server: ["hono.ts"], traps: HONO_TRAPS }],
    program: {
      imports: [
        ["{ createReceiver }", "@payhooks/core"],
        ["{ connectWebhooks }", "@payhooks/hono"],
        ["{ Hono }", "hono"],
      ],
      body: `
          const receiver = createReceiver({ connect: { secret: process.env.CONNECT_WEBHOOK_SECRET } });
          receiver.onSettlementApproved(async () => {});
          const app = new Hono();
          app.all("/webhooks/connect", connectWebhooks(receiver));
          const headers = { "content-type": "application/json" };
          const unsigned = { method: "POST", headers, body: "{}" };
          Promise.resolve(app.request("/webhooks/connect", unsigned)).then(async (answer) => {
            console.log(answer.status);
            await receiver.close();
          });
        `,
      prints: "400",
    },
  },
  {
    name: "next",
    title: "Next.js",
    options: "MountOptions",
    peers: ["next"],
    dependencies: {},
    examples: [
      "examples/next/src/lib/receiver.ts",
      "examples/next/src/app/callbacks/pay/route.ts",
      "examples/next/src/app/webhooks/connect/route.ts",
      "examples/next/src/app/api/work/route.ts",
    ],
    starts: false,
    onWorkers: false,
    servers: [],
    program: {
      imports: [
        ["{ createReceiver }", "@payhooks/core"],
        ["{ connectWebhooks, workRoute }", "@payhooks/next"],
      ],
      body: `
          const receiver = createReceiver({ connect: { secret: process.env.CONNECT_WEBHOOK_SECRET } });
          receiver.onSettlementApproved(async () => {});
          const POST = connectWebhooks(receiver);
          const GET = workRoute(receiver, { secret: "only-for-this-test" });
          const headers = { "content-type": "application/json" };
          const url = "http://localhost/webhooks/connect";
          const asked = [POST(new Request(url, { method: "POST", headers, body: "{}" })), GET(new Request(url))];
          Promise.all(asked).then(async (answers) => {
            console.log(answers.map(({ status }) => status).join(" "));
            await receiver.close();
          });
        `,
      prints: "400 401",
    },
  },
  {
    name: "nestjs",
    title: "NestJS",
    options: "PayhooksModuleOptions",
    peers: ["@nestjs/common", "@nestjs/core"],
    dependencies: { "raw-body": "bounded reading of a body's bytes" },
    examples: ["examples/nestjs/src/main.ts"],
    starts: false,
    onWorkers: false,
    servers: [
      { name: "NestJS on Express", server: ["nestjs.ts", "express"], traps: NESTJS_EXPRESS_TRAPS },
      { name: "NestJS on Fastify", server: ["nestjs.ts", "fastify"], traps: NESTJS_FASTIFY_TRAPS },
    ],
    program: {
      imports: [
        ["{ createReceiver, memoryInbox }", "@payhooks/core"],
        ["{ OnSettlementApproved, PayhooksModule, receiverToken }", "@payhooks/nestjs"],
        ["{ NestFactory }", "@nestjs/core"],
      ],
      body: `
        const receiver = createReceiver({
          connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
          inbox: memoryInbox(),
        });
        class Settlements {
          book() {}
        }
        OnSettlementApproved()(Settlements.prototype, "book", { value: Settlements.prototype.book });
        class App {}
        const app = { module: App, imports: [PayhooksModule.forRoot({ receiver })], providers: [Settlements] };
        NestFactory.createApplicationContext(app, { logger: false }).then(async (started) => {
          console.log(started.get(receiverToken()) === receiver, (await receiver.ready()).ok);
          await started.close();
        });
      `,
      prints: "true true",
    },
  },
  {
    name: "lambda",
    title: "Lambda",
    options: "MountOptions",
    peers: [],
    dependencies: {},
    examples: ["examples/lambda/src/index.ts"],
    starts: false,
    onWorkers: false,
    servers: [
      { name: "Lambda, format 1.0", server: ["lambda.ts", "v1"], ...BEHIND_A_GATEWAY },
      { name: "Lambda, format 2.0", server: ["lambda.ts", "v2"], ...BEHIND_A_GATEWAY },
      { name: "Lambda, load balancer", server: ["lambda.ts", "alb"], ...BEHIND_A_GATEWAY },
    ],
    program: {
      imports: [
        ["{ createReceiver, memoryInbox }", "@payhooks/core"],
        ["{ connectWebhooks, runQueue }", "@payhooks/lambda"],
      ],
      body: `
        const receiver = createReceiver({
          connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
          inbox: memoryInbox(),
          ack: "handled",
        });
        receiver.onSettlementApproved(async () => {});
        const headers = { "content-type": "application/json" };
        const unsigned = { httpMethod: "POST", path: "/", headers, body: "{}", requestContext: { elb: {} } };
        Promise.all([connectWebhooks(receiver)(unsigned), runQueue(receiver)({ Records: [] })]).then(
          async ([{ statusCode }, { batchItemFailures }]) => {
            console.log(statusCode, batchItemFailures.length);
            await receiver.close();
          },
        );
      `,
      prints: "400 0",
    },
  },
];

/** The name of an adapter's package. */
export function packageOf({ name }: Pick<Adapter, "name">): string {
  return `@payhooks/${name}`;
}

/** An object with an entry for each adapter. */
export function forAdapters<T>(
  entryOf: (adapter: Adapter) => readonly [key: string, value: T],
): Readonly<Record<string, T>> {
  return Object.fromEntries(ADAPTERS.map(entryOf));
}
