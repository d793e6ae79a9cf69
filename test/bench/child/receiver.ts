import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import type { Inbox } from "@payhooks/core/inbox";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { silent } from "../../support/silent.ts";
import type { InboxKind, Mode, Surroundings } from "../protocol.ts";

/** A receiver with an empty inbox. */
export interface Fresh {
  readonly receiver: Receiver;
  readonly inbox: Inbox;
  /** Of SQLite. */
  readonly file: string | null;
  end(): Promise<void>;
}

export type OurMode = Exclude<Mode, "bare" | "inline" | "pem" | "least" | "source" | "peer">;

export async function freshReceiver(
  mode: OurMode,
  surroundings: Surroundings,
  handle: () => Promise<void>,
  maxRecords?: number,
): Promise<Fresh> {
  const [kind, accepting] = mode.split("-") as [InboxKind, string | undefined];
  // An event that is accepted for others must not be run by the one beside it.
  const prefix = accepting === undefined ? "payhooks" : "payhooks-accepting";
  const { inbox, file = null, end } = freshInbox({ kind, prefix, maxRecords }, surroundings);
  const receiver = createReceiver({
    payments: { publicKey: surroundings.publicKey },
    connect: { secret: surroundings.secret },
    inbox,
    // A server that is closed in mid-work says so, once for each event. What goes wrong shows in the answers.
    logger: silent,
    ...(accepting === undefined ? {} : { run: "elsewhere" as const }),
  });
  receiver.onDeposit(handle).ignore("WITHDRAWAL");
  receiver.onSettlementApproved(handle).ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  await receiver.start();
  return {
    receiver,
    inbox,
    file,
    async end() {
      await receiver.close({ graceMs: 0 });
      end();
    },
  };
}

function freshInbox(
  {
    kind,
    prefix,
    maxRecords,
  }: { readonly kind: InboxKind; readonly prefix: string; readonly maxRecords: number | undefined },
  { redisUrl }: Surroundings,
): { readonly inbox: Inbox; readonly file?: string; readonly end: () => void } {
  switch (kind) {
    case "memory":
      // Accepting only, nothing finishes: there must be room for a whole round.
      return { inbox: memoryInbox({ maxUnfinished: 100_000, maxRecords }), end: () => {} };
    case "sqlite": {
      const folder = mkdtempSync(join(tmpdir(), "payhooks-bench-"));
      const file = join(folder, "inbox.db");
      return {
        inbox: sqliteInbox(file),
        file,
        end: () => rmSync(folder, { recursive: true }),
      };
    }
    case "redis":
      return { inbox: redisInbox(redisUrl ?? undefined, { prefix }), end: () => {} };
  }
}
