import type { HeldReason, Inbox, StoredEvent } from "@payhooks/core";
import { HELD_REASONS } from "@payhooks/core/inbox";
import type { Given } from "../command-line/given.ts";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { isAccepted } from "../delivery/post.ts";
import { MERCHANT_MADE_UP } from "../delivery/signing.ts";
import { idsOf } from "../events/event.ts";
import { select } from "../events/selection.ts";
import type { Result } from "./examine.ts";
import type { Finding } from "./findings.ts";

/** What an examination has left at the endpoint. */
export interface LeftBehind {
  /** The beginning of the ids of everything that was sent. */
  readonly ids: string;
  /** How many deliveries were accepted, without copies. Each of them has run or is held. */
  readonly taken: number;
  /** Those of them that are held. Null if no inbox was given to look into. */
  readonly held: readonly HeldProbe[] | null;
  /** True if the callbacks had a made-up merchantId. */
  readonly isMerchantMadeUp: boolean;
}

/** One held entry, and the probe that it came from. */
export interface HeldProbe {
  readonly eventId: string;
  readonly reason: HeldReason;
  readonly detail: string | null;
  readonly probe: string;
}

export async function findLeftBehind(
  results: readonly Result[],
  { ids, isMerchantMadeUp }: Pick<LeftBehind, "ids" | "isMerchantMadeUp">,
  inbox: Inbox | null,
): Promise<LeftBehind> {
  const taken = new Set(results.filter(({ answer }) => isAccepted(answer)).map(({ probe }) => probe.name));
  const copies = results.filter(({ probe }) => probe.kind === "duplicate" || probe.id === null);
  for (const { probe } of copies) taken.delete(probe.name);
  if (inbox === null) return { ids, taken: taken.size, held: null, isMerchantMadeUp };
  const held: HeldProbe[] = [];
  for await (const entry of select(inbox, { query: { state: "held" }, reasons: [], idPrefix: ids })) {
    const { eventId, reason, detail } = entry;
    if (reason !== null) held.push({ eventId, reason, detail, probe: probeOf(entry, results) });
  }
  return { ids, taken: taken.size, held, isMerchantMadeUp };
}

/**
 * The probe with the same body or, if there is none, with the same id. Two probes of one transaction share their id.
 */
function probeOf(entry: StoredEvent, results: readonly Result[]): string {
  const body = Buffer.from(entry.delivery?.rawBody ?? []);
  const same = results.find(({ probe }) => body.equals(probe.outgoing.body));
  const alike = results.find(({ probe }) => probe.id !== null && idsOf(entry).includes(probe.id));
  return (same ?? alike)?.probe.name ?? "?";
}

/** One finding for each reason. The answers do not show what is held: they are 2xx. */
export function heldFindings({ held }: LeftBehind): Finding[] {
  const reasons = [...new Set(held?.map(({ reason }) => reason))];
  return reasons.map((reason) => {
    const these = held?.filter((one) => one.reason === reason) ?? [];
    const details = [...new Set(these.map(({ detail }) => detail))].filter((detail) => detail !== null);
    const why = [reason, ...details].join(": ");
    const isUnexpected = reason === "unexpected";
    return {
      fault: "held",
      severity: isUnexpected ? "error" : "warning",
      probes: these.map(({ probe }) => probe),
      what:
        these.length === 1
          ? `It answers 1 genuine delivery with 2xx, and holds it. ${why}.`
          : `It answers ${these.length} genuine deliveries with 2xx, and holds them. ${why}.`,
      fix: isUnexpected
        ? "So no handler ran. Give the values that it expects: --merchant-id, --callback-url."
        : "It may hold the service's own deliveries too. payhooks events --state held shows what is wrong with these.",
    };
  });
}

/** Prints what was left behind, and how to discard it. */
export function printLeftBehind(
  { ids, taken, held, isMerchantMadeUp }: LeftBehind,
  given: Given,
  { line, paint }: Terminal,
): void {
  if (taken === 0 && (held?.length ?? 0) === 0) return;
  const inbox = inboxArguments(given);
  const reasons = held === null ? Object.keys(HELD_REASONS) : [...new Set(held.map(({ reason }) => reason))];
  const discard = `payhooks events discard --all --id-prefix ${ids} --reason ${reasons.join(",")} ${inbox} --by NAME --note "payhooks doctor"`;
  if (held === null) {
    const what =
      taken === 1
        ? "1 delivery was accepted (2xx). It has run, or it is held: the answer is the same."
        : `${taken} deliveries were accepted (2xx). They have run, or they are held: the answer is the same.`;
    line(`\n${paint("bold", "Left behind")}  ${what}`);
    if (isMerchantMadeUp) line(`    ${MERCHANT_MADE_UP}`);
    line(`    to see what is held: payhooks events --state held --id-prefix ${ids} ${inbox}`);
    line(`    to discard it:       ${discard}`);
    return;
  }
  if (held.length === 0) {
    line(`\n${paint("bold", "Left behind")}  Nothing is held now.`);
    return;
  }
  line(`\n${paint("bold", "Left behind")}  ${held.length} held ${held.length === 1 ? "entry" : "entries"}:`);
  for (const { eventId, reason, probe } of held) line(`    ${eventId}  ${reason}  ${shown(probe)}`);
  line(`    to discard ${held.length === 1 ? "it" : "them"}: ${discard}`);
}

/** The options that name the inbox, as the user would type them. URLs are left out, since they may hold a password. */
function inboxArguments(given: Given): string {
  const file = given.text("sqlite");
  if (given.flag("redis")) return "--redis URL";
  if (given.flag("postgres")) return "--postgres URL";
  if (file === undefined) return "--sqlite FILE | --redis URL | --postgres URL";
  return `--sqlite ${/^[\w./:@+-]+$/.test(file) ? file : JSON.stringify(file)}`;
}
