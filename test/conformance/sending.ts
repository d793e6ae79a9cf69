/** The bytes of a delivery as a request, and the ways to send requests to a server. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { type Answer, exchange, type HeaderLines, request } from "../e2e/wire.ts";

/** Sends to the server that listens on the port. Each request has a connection of its own. */
export type Send = (server: { readonly port: number }) => Promise<readonly Answer[]>;

export const JSON_TYPE = "application/json";
/** The headers of a body that says it is JSON, and has no signature beside it. */
export const AS_JSON: HeaderLines = [["Content-Type", JSON_TYPE]];
export const IN_CHUNKS: readonly [name: string, value: string] = ["Transfer-Encoding", "chunked"];

/** A delivery as a request. */
export function bytesOf(path: string, { headers, rawBody }: SignedDelivery, more: HeaderLines = []): Buffer {
  return request("POST", path, [...Object.entries(headers), ...more], rawBody);
}

/** The headers of a delivery, one of them left out. */
export function without(name: string, { headers }: SignedDelivery): HeaderLines {
  return Object.entries(headers).filter(([other]) => other !== name);
}

/** One request. */
export function one(bytes: Uint8Array): Send {
  return inTurn([bytes]);
}

/** Several requests, each when the one before is answered. */
export function inTurn(all: readonly Uint8Array[]): Send {
  return async ({ port }) => {
    const answers: Answer[] = [];
    for (const bytes of all) answers.push(await exchange(port, bytes));
    return answers;
  };
}

/** Copies of one request, all at the same time. */
export function atOnce(bytes: Uint8Array, copies: number): Send {
  return ({ port }) => Promise.all(times(copies, bytes).map((copy) => exchange(port, copy)));
}

/** A list that has the same item several times. */
export function times<T>(count: number, item: T): T[] {
  return Array.from({ length: count }, () => item);
}
