/** Other webhook libraries, each mounted as its documentation says. */
import { createServer, type RequestListener, type Server } from "node:http";
import { pathToFileURL } from "node:url";
import express, { type Express, type RequestHandler } from "express";
import type { PeerName } from "../protocol.ts";
import { HOST, listening } from "./framework.ts";

/** The parts of them that are used; they are not there when types are checked. */
interface Peers {
  readonly OctokitWebhooks: new (options: {
    secret: string;
  }) => {
    on(event: string, handler: () => Promise<void>): void;
  };
  createNodeMiddleware(webhooks: object, options: { path: string }): RequestListener & RequestHandler;
  readonly bolt: {
    readonly HTTPReceiver: BoltReceiver<{ readonly requestListener: RequestListener }>;
    readonly ExpressReceiver: BoltReceiver<{ readonly app: Express }>;
  };
  readonly Stripe: new (
    key: string,
  ) => {
    readonly webhooks: { constructEvent(body: Buffer, signature: string, secret: string): unknown };
  };
  readonly StandardWebhook: Verifier;
  readonly SvixWebhook: Verifier;
}

type BoltReceiver<Member> = new (options: {
  signingSecret: string;
  endpoints: string;
}) => Member & { init(app: object): void };

type Verifier = new (
  secret: string,
) => { verify(body: Buffer, headers: Readonly<Record<string, string>>): unknown };

export interface PeerMount {
  readonly peer: PeerName;
  readonly framework: "node" | "express";
  readonly path: string;
  readonly secret: string;
  /** The module that exports the peers. */
  readonly module: string;
  readonly handle: () => Promise<void>;
}

export async function mountPeer({
  peer,
  framework,
  path,
  secret,
  module,
  handle,
}: PeerMount): Promise<Server> {
  const peers = (await import(pathToFileURL(module).href)) as Peers;
  const onNode = framework === "node";
  switch (peer) {
    case "octokit": {
      const webhooks = new peers.OctokitWebhooks({ secret });
      webhooks.on("pull_request", handle);
      const middleware = peers.createNodeMiddleware(webhooks, { path });
      return listening(
        onNode ? createServer(middleware).listen(0, HOST) : express().use(middleware).listen(0, HOST),
      );
    }
    case "bolt": {
      const options = { signingSecret: secret, endpoints: path };
      // The receiver alone: an App would look up tokens and run listeners on top of it.
      const app = {
        processEvent: async ({ ack }: { ack(): Promise<void> }) => {
          await ack();
          await handle();
        },
      };
      if (onNode) {
        const receiver = new peers.bolt.HTTPReceiver(options);
        receiver.init(app);
        return listening(createServer(receiver.requestListener).listen(0, HOST));
      }
      const receiver = new peers.bolt.ExpressReceiver(options);
      receiver.init(app);
      return listening(receiver.app.listen(0, HOST));
    }
    case "stripe": {
      const { webhooks } = new peers.Stripe("sk_test_bench");
      return onExpress(path, handle, (body, headers) =>
        webhooks.constructEvent(body, headers["stripe-signature"] ?? "", secret),
      );
    }
    case "standardwebhooks":
    case "svix": {
      const { StandardWebhook, SvixWebhook } = peers;
      const base64 = Buffer.from(secret).toString("base64");
      const webhook = peer === "svix" ? new SvixWebhook(base64) : new StandardWebhook(base64);
      return onExpress(path, handle, (body, headers) => webhook.verify(body, headers));
    }
  }
}

/** A route of Express around a function that throws. */
function onExpress(
  path: string,
  handle: () => Promise<void>,
  verify: (body: Buffer, headers: Readonly<Record<string, string>>) => unknown,
): Promise<Server> {
  const app = express();
  app.post(path, express.raw({ type: "application/json" }), async (request, response) => {
    try {
      verify(request.body, request.headers as Record<string, string>);
    } catch {
      response.status(400).json({ error: "invalid signature" });
      return;
    }
    response.status(200).json({ received: true });
    await handle();
  });
  return listening(app.listen(0, HOST));
}
