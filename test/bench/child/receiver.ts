import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import type { Inbox } from "@payhooks/core/inbox";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import type { Mode, Surroundings } from "../protocol.ts";

/** A receiver with an empty inbox. */
export interface Fresh {
  readonly receiver: Receiver;
  end(): Promise<void>;
}

export type OurMode = Exclude<Mode, "bare" | "inline" | "pem">;

export async function freshReceiver(
  mode: OurMode,
  surroundings: Surroundings,
  handle: () => Promise<void>,
): Promise<Fresh> {
  const [kind = "", accepting] = mode.split("-");
  const { inbox, end } = freshInbox(kind, surroundings);
  const receiver = createReceiver({
    payments: { publicKey: surroundings.publicKey },
    connect: { secret: surroundings.secret },
    inbox,
    ...(accepting === undefined ? {} : { run: "elsewhere" as const }),
  });
  receiver.onDeposit(handle).ignore("WITHDRAWAL");
  receiver.onSettlementApproved(handle).ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  await receiver.start();
  return {
    receiver,
    async end() {
      await receiver.close({ graceMs: 0 });
      end();
    },
  };
}

function freshInbox(
  kind: string,
  { redisUrl }: Surroundings,
): { readonly inbox: Inbox; readonly end: () => void } {
  switch (kind) {
    case "memory":
      // Accepting only, nothing finishes: there must be room for a whole round.
      return { inbox: memoryInbox({ maxUnfinished: 100_000 }), end: () => {} };
    case "sqlite": {
      const folder = mkdtempSync(join(tmpdir(), "payhooks-bench-"));
      return {
        inbox: sqliteInbox(join(folder, "inbox.db")),
        end: () => rmSync(folder, { recursive: true }),
      };
    }
    default:
      return { inbox: redisInbox(redisUrl ?? undefined), end: () => {} };
  }
}
