import type { Server } from "node:http";
import type { Setup } from "./ways.ts";

/** A merchant's server that receives payment callbacks in one way, and calls the handler for each. */
export interface Shop {
  readonly server: Server;
  /** Called when all handlers have ended: resolves once the end of each is recorded, as far as this way records it. */
  recorded(): Promise<void>;
}

export type OpenShop = (setup: Setup, handle: () => Promise<void>) => Promise<Shop>;
