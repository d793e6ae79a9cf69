import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/**
 * Linux, macOS and Windows give outgoing connections, and whoever asks for any port, a higher one. A node of a Redis cluster
 * also listens on its port + 10,000: that is lower than those too, and no other test is given it.
 */
const FIRST = 10_000;
const END = 20_000;

/**
 * A port on loopback that nobody listens on. Until this process ends, no other call gets it, in whichever process: the UDP
 * port of the same number is held, and the system gives that to one only. So a server can be started on it, and started again.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 1_000; tries++) {
    const port = FIRST + Math.floor(Math.random() * (END - FIRST));
    if ((await reserve(port)) && (await isUnused(port))) return port;
  }
  throw new Error(`none of 1,000 ports between ${FIRST} and ${END} could be had`);
}

/** Holds the UDP port of this number until the process ends. False if another process, or this one, holds it. */
function reserve(port: number): Promise<boolean> {
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
