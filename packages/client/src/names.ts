import type { ServiceNames } from "@payhooks/core";
import { ID_FIELDS } from "./answers.ts";

/** The names that the client writes and reads. */
export interface ApiNames {
  /** The segment of the connected accounts' paths. */
  readonly pathSegment: string;
  /** The service's own medium, `PAY` in the specification. */
  readonly payMedium: string;
  /** The members of an answer that may hold the id of a transaction. The first that an answer has counts. */
  readonly idFields: readonly string[];
}

/** Reads the names of a deployment. Null if they were not made by `serviceNames`. */
export function apiNames(names: ServiceNames | undefined): ApiNames | null {
  if (names === undefined) return { pathSegment: "connect", payMedium: "PAY", idFields: ID_FIELDS };
  const { connect, api } = (names ?? {}) as Partial<ServiceNames>;
  if (typeof connect?.pathSegment !== "string" || !Array.isArray(api?.transactionIdFields)) return null;
  return { pathSegment: connect.pathSegment, payMedium: api.medium, idFields: api.transactionIdFields };
}
