/** Looks into a sealed inbox, and decisions about it, without its keys: nothing is left out silently. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { aesGcm, type SealKey } from "@payhooks/core/seal";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { anyCallbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { deliverTo, keys } from "./support/application.ts";
import { file, folder } from "./support/files.ts";
import { OnTerminal } from "./support/on-terminal.ts";
import { payhooks } from "./support/run.ts";

const path = join(folder, "sealed.db");
const secret: SealKey = { id: "2026-11", key: randomBytes(32) };

function keyFile(name: string, { id, key }: SealKey): string {
  return file(`${id}:${Buffer.from(key).toString("base64")}\n`, name);
}

/** The options of each way to look without the key. */
const WITHOUT = {
  "without keys": [],
  "with other bytes": ["--seal-keys", keyFile("bytes.keys", { id: "2026-11", key: randomBytes(32) })],
} as const;
const other: SealKey = { id: "other", key: randomBytes(32) };
const OTHER = ["--seal-keys", keyFile("other.keys", other)];
const RIGHT = ["--seal-keys", keyFile("right.keys", secret)];

/** Stores held events, and seals them with a key. Resolves to their ids. */
async function hold(
  database: string,
  key: SealKey,
  references: readonly string[],
): Promise<readonly string[]> {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(database, { seal: aesGcm([key]) }),
    run: "elsewhere",
    logger: silent,
  }).ignore("WITHDRAWAL");
  receiver.onDeposit(
    () => {
      throw new Error("refused");
    },
    { maxAttempts: 1 },
  );
  for (const referenceId of references) {
    await deliverTo(receiver, signPaymentCallback(anyCallbackFields({ referenceId }), keys.privateKey));
  }
  expect(await receiver.work()).toMatchObject({ ran: references.length, failed: references.length });
  const { events } = await receiver.events.list({ state: "held" });
  await receiver.close();
  return events.map((event) => event.eventId);
}

let eventId = "";

beforeAll(async () => {
  [eventId = ""] = await hold(path, secret, ["order-1", "order-2", "order-3"]);
});

const by = ["--by", "amina", "--yes"];

describe.each(Object.entries(WITHOUT))("a sealed inbox %s", (how, options) => {
  const sealed = ["--sqlite", path, ...options];
  const why = how === "with other bytes" ? "broken" : "--seal-keys";

  it.each([
    ["a list", ["events", "--state", "held"], "3 events"],
    ["a table", ["events", "--state", "held", "--csv"], "3 events"],
    ["a search", ["events", "--reference", "order-1"], "may be missing"],
    ["an id", ["events", "--id", "any"], "may be missing"],
    ["a name", ["events", "--event", "DEPOSIT"], "may be missing"],
    ["an explanation", ["explain", "order-1"], "may be missing"],
    ["a replay", ["events", "replay", "--all", "--reason", "exhausted", "--note", "n", ...by], "3 events"],
    ["an erasure", ["events", "erase", "--all", "--state", "held", "--unfinished", ...by], "3 events"],
    [
      "an erasure of a reference",
      ["events", "erase", "--all", "--reference", "order-1", "--unfinished", ...by],
      "may be missing",
    ],
  ])("%s fails, and says that it could not read the events", async (_, command, what) => {
    const ended = await payhooks([...command, ...sealed]);
    expect(ended.stdout).not.toMatch(
      /There are no such events|Nothing that matches|Nothing was found|has no event/,
    );
    expect(ended.stderr).toContain(what);
    expect(ended.stderr).toContain('the key "2026-11"');
    expect(ended.stderr).toContain(why);
    expect(ended.code).toBe(1);
  });

  it.each([
    ["a look", []],
    ["a replay", ["replay"]],
    ["a discard", ["discard"]],
    ["an erasure", ["erase", "--unfinished"]],
  ])("%s of one event says why it cannot be read", async (_, [action = "", ...others]) => {
    const decision = action === "" ? [] : [...others, ...by];
    const note = action === "" || action === "erase" ? [] : ["--note", "n"];
    const words = action === "" ? [] : [action];
    const ended = await payhooks(["events", ...words, eventId, ...decision, ...note, ...sealed]);
    expect(ended.stderr).toContain('the key "2026-11"');
    expect(ended.stderr).toContain(why);
    expect(ended.code).toBe(1);
  });

  it("the beginning of an id is not said to be unknown", async () => {
    const ended = await payhooks(["events", `${eventId.slice(0, 8)}…`, ...sealed]);
    expect(ended.stderr).toContain('the key "2026-11"');
    expect(ended.code).toBe(1);
  });

  it("says it with --json, too", async () => {
    const ended = await payhooks(["events", "--state", "held", "--json", ...sealed]);
    expect(ended.json().at(-1)).toMatchObject({
      error: { code: how === "with other bytes" ? "ERR_SEAL_BROKEN" : "ERR_SEAL_KEY_MISSING" },
    });
    expect(ended.code).toBe(1);
  });

  it("move says why a record stays", async () => {
    const to = join(folder, `moved ${how}.db`);
    const ended = await payhooks(["move", "--from", path, "--to", to, "--dry-run", ...options]);
    expect(ended.stdout).toContain(
      how === "with other bytes" ? "its seal is broken, or" : "its key is not in --seal-keys",
    );
    expect(ended.code).toBe(1);
  });
});

it("with a key of another id, a list says which key is missing", async () => {
  const ended = await payhooks(["events", "--state", "held", "--sqlite", path, ...OTHER]);
  expect(ended).toMatchObject({ code: 1, stdout: "No event could be read.\n" });
  expect(ended.stderr).toBe(
    [
      'payhooks: 3 events are left out, because not everything in this inbox can be read. A record cannot be read: it is sealed with the key "2026-11", which this process does not have. [ERR_SEAL_KEY_MISSING]',
      "Give the keys of the inbox with --seal-keys FILE, this one among them: one ID:BASE64 a line.",
      "",
    ].join("\n"),
  );
});

it("a line that is not a key is named by its number in the file", async () => {
  const [first = ""] = readFileSync(RIGHT[1] ?? "", "utf8").split("\n");
  const broken = file(`# the current key\n\n${first}\n\n# the old one\n2025-11:short\n`, "broken.keys");
  const ended = await payhooks(["events", "--sqlite", path, "--seal-keys", broken]);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toContain(`Line 6 of ${broken} is not a key.`);
  expect(ended.stderr).not.toContain("short");
});

it("with its keys, everything is found, and nothing is said", async () => {
  const found = await payhooks(["events", "--state", "held", "--sqlite", path, ...RIGHT]);
  expect(found).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("3 events.") });
  const none = await payhooks(["events", "--state", "waiting", "--sqlite", path, ...RIGHT]);
  expect(none).toMatchObject({ code: 0, stderr: "", stdout: "There are no such events.\n" });
  const unknown = await payhooks(["events", "--reference", "order-9", "--sqlite", path, ...RIGHT]);
  expect(unknown).toMatchObject({ code: 1, stderr: "", stdout: "Nothing was found.\n" });
});

describe("a decision about all events of which some cannot be read", () => {
  const LEFT_OUT =
    '3 events are left out, because not everything in this inbox can be read. A record cannot be read: it is sealed with the key "2026-11", which this process does not have.';
  const decisions = [
    ["replay", ["replay", "--all", "--reason", "exhausted", "--by", "amina", "--note", "n"]],
    ["discard", ["discard", "--all", "--reason", "exhausted", "--by", "amina", "--note", "n"]],
    ["erase", ["erase", "--all", "--state", "held", "--unfinished", "--by", "amina"]],
  ] as const;

  async function mixedInbox(name: string): Promise<string> {
    const database = join(folder, name);
    await hold(database, secret, ["order-1", "order-2", "order-3"]);
    await hold(database, other, ["order-4"]);
    return database;
  }

  it.skipIf(process.platform !== "linux").each(decisions)(
    "says how many before it asks: %s",
    async (kind, args) => {
      const database = await mixedInbox(`asked ${kind}.db`);
      const terminal = new OnTerminal(["events", ...args, "--sqlite", database, ...OTHER]);
      await terminal.until(`Type ${kind} 1 to go on: `);
      expect(terminal.output).toContain(LEFT_OUT);
      expect(terminal.output).toContain("Give the keys of the inbox with --seal-keys FILE");
      terminal.type("no\r");
      expect(await terminal.ended).toBe(1);
      expect(terminal.output).toContain("Nothing was decided.");
    },
  );

  it.each(decisions)(
    "says how many before and after it is carried out with --yes: %s",
    async (kind, args) => {
      const database = await mixedInbox(`told ${kind}.db`);
      const ended = await payhooks(["events", ...args, "--yes", "--sqlite", database, ...OTHER]);
      expect(ended.stdout).toContain(LEFT_OUT);
      expect(ended.stderr).toContain(LEFT_OUT);
      expect(ended.code).toBe(1);
      const held = await payhooks(["events", "--state", "held", "--sqlite", database, ...OTHER]);
      expect(held.stdout).toBe("No event could be read.\n");
    },
  );
});
