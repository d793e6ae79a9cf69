import { connectWebhooks, paymentCallbacks } from "@payhooks/fastify";
import Fastify, { type FastifyInstance } from "fastify";
import { type Framework, HOST } from "./framework.ts";

async function listen(app: FastifyInstance) {
  await app.listen({ port: 0, host: HOST });
  return app.server;
}

export const onFastify: Framework = {
  byHand(path, check) {
    const app = Fastify();
    app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) =>
      done(null, body),
    );
    app.post(path, async (request, reply) => {
      const signature = request.headers["x-connect-signature"];
      if (check !== null && !check(request.body as Buffer, signature as string | undefined)) {
        return reply.code(401).send({ error: "invalid signature" });
      }
      return reply.code(200).send({ received: true });
    });
    return listen(app);
  },
  ours(path, scheme, receiver) {
    const app = Fastify();
    app.register(scheme === "rsa" ? paymentCallbacks(receiver) : connectWebhooks(receiver), { prefix: path });
    return listen(app);
  },
};
