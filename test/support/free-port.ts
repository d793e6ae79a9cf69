import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/**
 * Below the ports that Linux, macOS and Windows give to outgoing connections and to whoever asks for any port. A Redis node
 * of a cluster listens on its port + 10,000 as well, so that range is below them too, and nothing else is in it.
 */
const FIRST = 10_000;
const END = 20_000;

/**
 * A port on loopback that nobody listens on. Until this process ends, no other call gets it, whichever process makes it:
 * the UDP port of that number is held, and the system grants that once. So there is time to start a server on it, and to
 * start it again.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 1_000; tries++) {
    const port = FIRST + Math.floor(Math.random() * (END - FIRST));
    if ((await isReserved(port)) && (await isUnused(port))) return port;
  }
  throw new Error(`none of 1,000 ports between ${FIRST} and ${END} could be had`);
}

function isReserved(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => socket.close(() => resolve(false)));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });
}

function isUnused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
