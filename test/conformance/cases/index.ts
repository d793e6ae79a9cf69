/**
 * The duties of every adapter, over real sockets: the same bytes get the same answer, and the same handlers run. A case says what
 * is sent, and which answers and effects must come of it. It is written once and compared with every adapter.
 */
import type { ServiceNames } from "@payhooks/core";
import type { TestKeys } from "@payhooks/core/testing";
import type { Case } from "../case.ts";
import { Deliveries } from "../deliveries.ts";
import { applicationCases } from "./application.ts";
import { bodyCases } from "./bodies.ts";
import { closingCases } from "./closing.ts";
import { connectionCases } from "./connections.ts";
import { contentTypeCases } from "./content-types.ts";
import { contextCases } from "./contexts.ts";
import { eventCases } from "./events.ts";
import { exactBytesCases } from "./exact-bytes.ts";
import { requestCases } from "./requests.ts";
import { senderCases } from "./senders.ts";
import { signatureCases } from "./signatures.ts";

/** In the order in which they run. The first finds the process cold, the last find a receiver closed. */
const THEMES: readonly ((deliveries: Deliveries) => readonly Case[])[] = [
  exactBytesCases,
  signatureCases,
  contentTypeCases,
  bodyCases,
  requestCases,
  eventCases,
  contextCases,
  senderCases,
  applicationCases,
  connectionCases,
  closingCases,
];

/** All cases. Adapters that are given the same keys, secret and time are sent the same bytes. */
export function conformanceCases(
  keys: TestKeys,
  secret: string,
  now: number,
  names?: ServiceNames,
): readonly Case[] {
  const deliveries = new Deliveries(keys, secret, now, names);
  return THEMES.flatMap((casesOf) => casesOf(deliveries));
}
