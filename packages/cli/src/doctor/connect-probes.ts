import { randomUUID } from "node:crypto";
import { anyConnectEvent, signConnectWebhook } from "@payhooks/core/testing";
import {
  idIn,
  JSON_HEADERS,
  LARGE_BYTES,
  type Probe,
  type ProbeIds,
  type ProbeKind,
  STALE_MS,
} from "./probes.ts";

const HEADER = "x-connect-signature";

/** Declined accounts and settlements. No merchant pays anything out because of them. */
export function connectProbes(ids: ProbeIds, secret: string): Probe[] {
  const text = (name = "connected_account.declined", at = Date.now()): string =>
    JSON.stringify(anyConnectEvent(name, { idempotency_key: ids.next() }, at));
  const signed = (name: string, kind: ProbeKind, body: string | Uint8Array): Probe => {
    const { headers, rawBody } = signConnectWebhook(Buffer.from(body), secret);
    return { name, kind, id: idIn(rawBody), outgoing: { headers, body: rawBody } };
  };
  const withHeader = (
    name: string,
    body: string,
    headers: Record<string, string>,
    kind: ProbeKind = "forged",
  ): Probe => ({
    name,
    kind,
    id: idIn(Buffer.from(body)),
    outgoing: { headers: { ...JSON_HEADERS, ...headers }, body: Buffer.from(body) },
  });
  const headerOf = (body: string, key = secret): string =>
    signConnectWebhook(Buffer.from(body), key).headers[HEADER] ?? "";
  const first = text();
  const settlement = text("settlement.declined");
  const withMember = (json: string): string => `${text().slice(0, -1)},${json}}`;
  const forged = text();
  return [
    signed("genuine webhook", "baseline", first),
    signed("genuine settlement", "progress", settlement),
    signed("indented", "spelling", JSON.stringify(JSON.parse(text()), null, 2)),
    signed(
      "spaces after commas and colons",
      "spelling",
      text().replaceAll(',"', ', "').replaceAll('":', '": '),
    ),
    signed("line end after the body", "spelling", `${text()}\n`),
    signed(
      "\\r\\n line ends",
      "spelling",
      JSON.stringify(JSON.parse(text()), null, 2).replaceAll("\n", "\r\n"),
    ),
    signed("letters beyond ASCII", "spelling", withMember('"note":"ክፍያ ✓ – €"')),
    signed("\\u escapes and \\/", "spelling", withMember('"note":"\\u1218 \\u003cok\\u003e \\/"')),
    signed("a number with a fraction of zeros", "number", withMember('"fee":10.0')),
    signed("a number with an exponent", "number", withMember('"fee":1e2')),
    signed("a number beyond 2^53", "number", withMember('"fee":12345678901234567890')),
    signed("the same bytes again", "duplicate", first),
    signed("the same bytes a third time", "duplicate", first),
    withHeader("signed with another secret", forged, {
      [HEADER]: headerOf(forged, `whsec_${randomUUID()}`),
    }),
    withHeader("header of another body", forged, { [HEADER]: headerOf(text()) }),
    withHeader("body changed after signing", forged.replace("declined", "approved"), {
      [HEADER]: headerOf(forged),
    }),
    withHeader("no header", forged, {}),
    withHeader("an empty header", forged, { [HEADER]: "" }),
    withHeader("sha256= and nothing else", forged, { [HEADER]: "sha256=" }),
    withHeader("a header that is no hex", forged, { [HEADER]: `sha256=${"z".repeat(64)}` }),
    signed("not JSON", "not-json", "{ not json"),
    signed("an empty body", "not-json", ""),
    signed("signed 30 days ago", "stale", text("connected_account.declined", Date.now() - STALE_MS)),
    withHeader("a body of 1 MiB", `{"x":"${"x".repeat(LARGE_BYTES)}"}`, { [HEADER]: headerOf("") }, "large"),
    {
      name: "GET",
      kind: "wrong-method",
      id: null,
      outgoing: { method: "GET", headers: {}, body: Buffer.alloc(0) },
    },
  ];
}
