/** node:http by itself. */
import { createServer, type Server } from "node:http";
import { HOST, listening } from "./framework.ts";

export function bareOnNode(path: string): Promise<Server> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const known = request.url === path && Buffer.concat(chunks).byteLength > 0;
      const body = known ? '{"received":true}' : '{"error":"not found"}';
      response
        .writeHead(known ? 200 : 404, { "content-type": "application/json", "content-length": body.length })
        .end(body);
    });
  });
  return listening(server.listen(0, HOST));
}
