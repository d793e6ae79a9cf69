import type { HeldReason, HistoryEntry, SlotState } from "./inbox.ts";
import type { IdempotencyRecord, Slot } from "./record.ts";

/** A slot's fields in order. What is usual is written as 0, so that a record takes little room. */
type PackedSlot = [
  key: string,
  name: string | 0,
  status: string | 0,
  amounts: Readonly<Record<string, string>> | string | 0,
  verdict: HeldReason | 0,
  queued: 0 | 1,
  state: SlotState | 0,
  replays: number,
  discarded?: HistoryEntry,
];

type Packed = [
  flow: 0 | 1,
  tenant: string | 0,
  id: string,
  identity: Readonly<Record<string, string>>,
  fence: number,
  signedAt: number,
  expiresAt: number,
  status: string | 0,
  statusSlot: string | 0,
  terminal: 0 | 1,
  ...slots: PackedSlot[],
];

/**
 * A finished record as one short string. Nothing in it runs, waits or is held, so that only what recognises copies
 * has to be kept. Names and statuses that stand in the record's facts already are not repeated in its slots.
 */
export function pack(record: IdempotencyRecord): string {
  const packed: Packed = [
    record.flow === "payments" ? 0 : 1,
    record.tenant || 0,
    record.id,
    record.identity,
    record.fence,
    record.signedAt,
    record.expiresAt,
    record.status ?? 0,
    record.statusSlot ?? 0,
    record.terminal ? 1 : 0,
    ...Object.entries(record.slots).map(([key, slot]) => packSlot(record, key, slot)),
  ];
  return JSON.stringify(packed);
}

function packSlot(record: IdempotencyRecord, key: string, slot: Slot): PackedSlot {
  const { callback, ...others } = slot.amounts;
  const amounts = Object.keys(others).length > 0 ? slot.amounts : (callback ?? 0);
  const packed: PackedSlot = [
    key === record.statusSlot ? "" : key,
    slot.name === record.identity.event ? 0 : slot.name,
    slot.status === record.status ? 0 : slot.status,
    amounts,
    slot.verdict === "run" ? 0 : slot.verdict,
    slot.queued ? 1 : 0,
    slot.state === "done" ? 0 : slot.state,
    slot.replays,
  ];
  if (slot.discarded !== undefined) packed.push(slot.discarded);
  return packed;
}

/** The reverse of {@link pack}. */
export function unpack(text: string): IdempotencyRecord {
  const [
    flow,
    tenant,
    id,
    identity,
    fence,
    signedAt,
    expiresAt,
    status,
    statusSlot,
    terminal,
    ...packedSlots
  ] = JSON.parse(text) as Packed;
  const record: IdempotencyRecord = {
    flow: flow === 0 ? "payments" : "connect",
    tenant: tenant || "",
    id,
    status: status === 0 ? null : status,
    statusSlot: statusSlot === 0 ? null : statusSlot,
    terminal: terminal === 1,
    identity,
    fence,
    lease: null,
    slots: {},
    signedAt,
    expiresAt,
  };
  for (const packed of packedSlots) {
    const [key, name, slotStatus, amounts, verdict, queued, state, replays, discarded] = packed;
    record.slots[key === "" ? (record.statusSlot ?? "") : key] = {
      name: name === 0 ? (identity.event ?? "") : name,
      status: slotStatus === 0 ? (record.status ?? "") : slotStatus,
      amounts: amounts === 0 ? {} : typeof amounts === "string" ? { callback: amounts } : amounts,
      verdict: verdict === 0 ? "run" : verdict,
      queued: queued === 1,
      state: state === 0 ? "done" : state,
      told: false,
      replays,
      work: null,
      ...(discarded === undefined ? {} : { discarded }),
    };
  }
  return record;
}
