import type { FlowName } from "../../events.ts";
import type { HeldReason, SlotState } from "../inbox.ts";
import type { IdempotencyRecord, Slot } from "../record.ts";

type PackedSlot = [
  key: string,
  name: string,
  status: string,
  amounts: Readonly<Record<string, string>>,
  verdict: "run" | HeldReason,
  queued: 0 | 1,
  state: SlotState,
  told: 0 | 1,
  replays: number,
];

type Packed = [
  flow: FlowName,
  tenant: string,
  id: string,
  status: string | null,
  statusSlot: string | null,
  terminal: 0 | 1,
  identity: Readonly<Record<string, string>>,
  fence: number,
  signedAt: number,
  expiresAt: number,
  ...slots: PackedSlot[],
];

/** A finished record as one string: a tenth of the memory of the objects. Nothing in it is running or held. */
export function pack(record: IdempotencyRecord): string {
  const packed: Packed = [
    record.flow,
    record.tenant,
    record.id,
    record.status,
    record.statusSlot,
    record.terminal ? 1 : 0,
    record.identity,
    record.fence,
    record.signedAt,
    record.expiresAt,
    ...Object.entries(record.slots).map(packSlot),
  ];
  return JSON.stringify(packed);
}

function packSlot([key, slot]: [string, Slot]): PackedSlot {
  const { name, status, amounts, verdict, queued, state, told, replays } = slot;
  return [key, name, status, amounts, verdict, queued ? 1 : 0, state, told ? 1 : 0, replays];
}

/** The reverse of {@link pack}. */
export function unpack(text: string): IdempotencyRecord {
  const [
    flow,
    tenant,
    id,
    status,
    statusSlot,
    terminal,
    identity,
    fence,
    signedAt,
    expiresAt,
    ...packedSlots
  ] = JSON.parse(text) as Packed;
  const slots: Record<string, Slot> = {};
  for (const [key, name, slotStatus, amounts, verdict, queued, state, told, replays] of packedSlots) {
    slots[key] = {
      name,
      status: slotStatus,
      amounts,
      verdict,
      queued: queued === 1,
      state,
      told: told === 1,
      replays,
      work: null,
    };
  }
  return {
    flow,
    tenant,
    id,
    status,
    statusSlot,
    terminal: terminal === 1,
    identity,
    fence,
    lease: null,
    slots,
    signedAt,
    expiresAt,
  };
}
