import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { StoredDelivery } from "./event.ts";

const known = new WeakMap<StoredDelivery, string | null>();

/** Remembers the reference that was found in a delivery, so that its body is not read again. */
export function knowReferenceId(delivery: StoredDelivery, referenceId: string | null): void {
  known.set(delivery, referenceId);
}

/** The merchant's reference in a stored payment; null in the connect flow, and if the reading is not certain. */
export function referenceIdOf(delivery: StoredDelivery, verdict: "run" | HeldReason): string | null {
  if (delivery.flow !== "payments" || verdict === "ambiguous" || verdict === "malformed") return null;
  let reference = known.get(delivery);
  if (reference === undefined) {
    reference = readReference(delivery);
    known.set(delivery, reference);
  }
  return reference;
}

function readReference({ source, rawBody }: StoredDelivery): string | null {
  const name = source === "lookup" ? "reference" : "referenceId";
  try {
    const { [name]: reference } = JSON.parse(Buffer.from(rawBody).toString("utf8")) as Record<
      string,
      unknown
    >;
    return typeof reference === "string" ? reference : null;
  } catch {
    return null;
  }
}
