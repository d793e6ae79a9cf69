import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Receiver } from "@payhooks/core";
import type { Scheme } from "../protocol.ts";
import type { Check } from "./inline.ts";

export const PATHS: Readonly<Record<Scheme, string>> = {
  rsa: "/callbacks/pay",
  hmac: "/webhooks/connect",
};

/** A framework with one route, each way as its documentation shows it. Listens on a free port of loopback. */
export interface Framework {
  /** Reads the exact bytes and answers; with a check, what that says. */
  byHand(path: string, check: Check | null): Promise<Server>;
  ours(path: string, scheme: Scheme, receiver: Receiver): Promise<Server>;
}

export const HOST = "127.0.0.1";

export function listening(server: Server): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    if (server.listening) resolve(server);
    else server.once("listening", () => resolve(server));
  });
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
