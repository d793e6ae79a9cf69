import type { EventSummary, FindQuery, Inbox } from "@payhooks/core";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";
import { INBOX_OPTIONS, openInbox } from "../held/open-inbox.ts";
import { eventAsJson, lifeAsJson, printEvent, printLife } from "./event.ts";

export const findCommand: Command = {
  name: "find",
  summary: "Find what became of a payment or a webhook",
  usage: [
    "--reference TEXT --redis URL | --sqlite FILE | --postgres URL",
    "--transaction PAY_TXN_ID [--tenant TENANT] --redis URL | --sqlite FILE | --postgres URL",
    "--webhook IDEMPOTENCY_KEY [--tenant TENANT] --redis URL | --sqlite FILE | --postgres URL",
  ],
  options: {
    ...INBOX_OPTIONS,
    reference: { value: "TEXT", help: "the merchant's reference of a payment (referenceId)" },
    transaction: { value: "PAY_TXN_ID", help: "the payTxnId of a payment" },
    webhook: { value: "IDEMPOTENCY_KEY", help: "the idempotency_key of a connected-account webhook" },
    tenant: {
      value: "TENANT",
      help: "the tenant, as the key resolver names it; needed to find an event by its id if a resolver chooses the keys",
    },
  },
  notes: [
    "It shows each event with its copies, its attempts and the decisions about it. The exit code is 1 if nothing is found.",
    "Redis does not find finished events by their reference. The command then searches the unfinished and held events, and says so.",
  ],
  examples: [
    "payhooks find --reference order-17 --postgres postgres://localhost/shop",
    "payhooks find --transaction 8c1f0a52-6d6e-4a6c-9d5e-0e2b8f3b7a11 --sqlite payhooks.db",
  ],
  arguments: { least: 0, most: 0 },
  async run(given, terminal) {
    const query = queryOf(given);
    const inbox = await openInbox(given);
    try {
      const { events, isWhole } = await search(inbox, query);
      for (const event of events) {
        const life = await inbox.read(event.eventId);
        terminal.json({ ...eventAsJson(event), ...(life === null ? {} : lifeAsJson(life)) });
        printEvent(event, terminal);
        if (life !== null) printLife(life, terminal);
      }
      if (!isWhole) {
        terminal.json({ notSearched: "finished" });
        terminal.line("Redis does not find finished events by their reference: they were not searched.");
      }
      if (events.length === 0) terminal.line("Nothing was found.");
      return events.length === 0 ? EXIT.failure : EXIT.ok;
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

function queryOf(given: Given): FindQuery {
  const [referenceId, payTxnId, idempotencyKey] = ["reference", "transaction", "webhook"].map((name) => {
    if (given.text(name) === "") throw new UsageError(`--${name} must not be empty.`);
    return given.text(name);
  });
  const count = [referenceId, payTxnId, idempotencyKey].filter((one) => one !== undefined).length;
  if (count !== 1) throw new UsageError("Give one of --reference, --transaction and --webhook.");
  const tenant = given.text("tenant");
  if (referenceId !== undefined) return { referenceId, tenant };
  if (payTxnId !== undefined) return { payTxnId, tenant };
  return { idempotencyKey: idempotencyKey ?? "", tenant };
}

interface Found {
  readonly events: readonly EventSummary[];
  /** False if finished events could not be searched. */
  readonly isWhole: boolean;
}

async function search(inbox: Inbox, query: FindQuery): Promise<Found> {
  try {
    return { events: await inbox.find(query), isWhole: true };
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ERR_NOT_SEARCHABLE") throw error;
    const { referenceId, tenant } = query;
    const events: EventSummary[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<Inbox["events"]["list"]>> = await inbox.events.list(
        { referenceId, tenant },
        { cursor, limit: 1_000 },
      );
      events.push(...page.events);
      cursor = page.next;
    } while (cursor !== null);
    return { events, isWhole: false };
  }
}
