import { createRequire } from "node:module";
import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { resplitPair, signConnectWebhook } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { readArguments } from "../src/command-line/parsed-arguments.ts";
import { inboxOptionsGiven } from "../src/events/open-inbox.ts";
import { explainCommand } from "../src/explain/command.ts";
import { application, keys } from "./support/application.ts";
import { file } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

describe("payhooks explain", () => {
  // A held event becomes older between two calls.
  const ageless = (text: string): string => text.replace(/\d+ s ago/, "some time ago");

  it("tells the story of an event by its reference, its payTxnId, its event id and the beginning of that", async () => {
    const app = await application();
    await app.fails({ referenceId: "order-1", payTxnId: "pay-1" });
    const [held] = await app.held();
    if (held === undefined) throw new Error("nothing is held");
    const result = await payhooks(["explain", "order-1", "--sqlite", app.database]);
    expect(result).toMatchObject({ code: 0, stderr: "" });
    expect(result.stdout).toMatch(
      new RegExp(
        [
          `^${held.eventId}  held: exhausted`,
          "  \\S+Z  A callback arrived in the flow payments, verified with the key [0-9a-f]{16}, and was accepted\\. It was read as DEPOSIT SUCCESS, amount \\S+, reference order-1, id pay-1\\.",
          "  \\S+Z  The handler deposit was given up as exhausted, at attempt 1\\. It threw: Error: the bank is down",
          "  \\S+Z  It was put on hold as exhausted: A handler has failed at every attempt that it had\\.",
        ].join("\n"),
      ),
    );
    expect(result.stdout).toContain("\n  What you can do\n  Fix what failed. Then replay it:");
    // The file is in a folder with a space in its name.
    const command = `payhooks events replay ${held.eventId} --by NAME --note TEXT --sqlite '${app.database}'`;
    expect(result.stdout).toContain(`\n  ${command}\n`);
    for (const name of ["pay-1", held.eventId, held.eventId.slice(0, 8)]) {
      const same = await payhooks(["explain", name, "--sqlite", app.database]);
      expect(ageless(same.stdout)).toBe(ageless(result.stdout));
    }
  });

  it("explains each event of a reference, the oldest first, also as JSON", async () => {
    const app = await application({ maxAttempts: 2, backoffMs: 3_600_000 });
    await app.fails({ referenceId: "order-1", payTxnId: "pay-1" });
    await app.succeeds({ referenceId: "order-1", payTxnId: "pay-2" });
    const result = await payhooks(["explain", "order-1", "--json", "--sqlite", app.database]);
    expect(result.json()).toMatchObject([
      {
        state: "retrying",
        decisions: ["retry"],
        handlers: [expect.stringContaining("has failed: 1 attempt")],
      },
      { state: "done", decisions: [], past: [{ text: expect.stringContaining("id pay-2") }] },
    ]);
  });

  it("advises commands for the inbox that was named, and never repeats the address of a server", async () => {
    const app = await application();
    await app.fails({ referenceId: "order-1" });
    const none = file("");
    const keyFile = file(`k1:${Buffer.alloc(32, 1).toString("base64")}\n`, "k1.keys");
    const { stdout } = await payhooks([
      "explain",
      "order-1",
      "--sqlite",
      app.database,
      "--seal-keys",
      keyFile,
    ]);
    expect(stdout).toContain(`--note TEXT --sqlite '${app.database}' --seal-keys '${keyFile}'\n`);
    const options = {
      redis: "rediss://:hunter2@127.0.0.1:1",
      prefix: "shop",
      sqlite: none,
      schema: "-it's",
    };
    const words = Object.entries(options).flatMap(([name, value]) => [`--${name}=${value}`]);
    expect(inboxOptionsGiven(readArguments(explainCommand, ["order-1", ...words]))).toBe(
      `--redis URL --prefix shop --sqlite '${none}' --schema='-it'\\''s'`,
    );
  });

  it("explains the newest 20 events of a reference, and says how many there are more", async () => {
    const app = await application();
    for (let n = 1; n <= 24; n++) await app.succeeds({ referenceId: "order-1", payTxnId: `pay-${n}.` });
    const result = await payhooks(["explain", "order-1", "--sqlite", app.database]);
    expect(result.code).toBe(0);
    expect(result.stdout).toMatch(
      /^4 older events are not shown: payhooks events --reference or --id lists them\.\n/,
    );
    expect([...result.stdout.matchAll(/id pay-(\d+)\./g)].map(([, n]) => Number(n))).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 5),
    );
    const json = await payhooks(["explain", "order-1", "--json", "--sqlite", app.database]);
    expect(json.json()[0]).toEqual({ notShown: 4 });
    expect(json.json()).toHaveLength(21);
  });

  it("fails if it has explained one event of a reference and cannot read another", async () => {
    const app = await application();
    await app.succeeds({ referenceId: "order-1", payTxnId: "pay-1", status: "FAILED" });
    await app.succeeds({ referenceId: "order-1", payTxnId: "pay-2" });
    await app.receiver.close({ graceMs: 0 });
    const Sqlite = createRequire(import.meta.url)("libsql") as typeof import("libsql");
    const database = new Sqlite(app.database);
    const record = "(SELECT record FROM events WHERE id = 'pay-2')";
    expect(database.prepare(`UPDATE records SET text = 'x' WHERE row_id = ${record}`).run().changes).toBe(1);
    database.close();
    const result = await payhooks(["explain", "order-1", "--sqlite", app.database]);
    expect(result.stdout).toContain("id pay-1");
    expect(result.stderr).toMatch(/left out, because not everything in this inbox can be read/);
    expect(result.code).toBe(1);
  });

  it("shows the text of a stranger as one line, and says so if no event could be read", async () => {
    const app = await application();
    await app.deliver(resplitPair("order-2", keys.privateKey).forged);
    const result = await payhooks(["explain", "order-2", "--sqlite", app.database]);
    expect(result).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("No event could be read from it"),
    });
    await app.fails({ referenceId: "a\u202eb\nc" });
    const strange = await payhooks(["explain", "a\u202eb\nc", "--sqlite", app.database]);
    expect(strange.stdout).toContain("reference a\\u202eb\\u000ac,");
  });

  it("shows the order of the events of one account, found by the account's id", async () => {
    const { database } = await application();
    const secret = "whsec_of_the_master_merchant";
    const receiver = createReceiver({
      connect: { secret },
      inbox: sqliteInbox(database),
      run: "after-response",
      logger: silent,
    });
    onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
    receiver
      .onConnectedAccountApproved(() => {})
      .onConnectedAccountDeclined(() => {})
      .ignore("settlement.approved")
      .ignore("settlement.declined");
    await receiver.start();
    const from = Date.now() - 60_000;
    const say = async (decision: "approved" | "declined", at: number): Promise<void> => {
      const { headers, rawBody } = signConnectWebhook(
        {
          event: `connected_account.${decision}`,
          idempotency_key: `evt_${decision}`,
          occurred_at: new Date(from + at).toISOString(),
          data: { object: "connected_account", id: "cm_1", master_merchant_id: "mm_1", kyc_status: decision },
        },
        secret,
      );
      const work: Promise<unknown>[] = [];
      const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
      await receiver.connect.receive({ ...delivery, waitUntil: (promise) => work.push(promise) });
      await Promise.all(work);
    };
    await say("declined", 5_000);
    await say("approved", 0);
    const result = await payhooks(["explain", "cm_1", "--sqlite", database]);
    const [first, last] = [0, 5_000].map((at) => new Date(from + at).toISOString());
    expect(result.stdout).toMatch(
      new RegExp(
        [
          "Order of its subject, by signed time",
          `  > ${first}  [0-9a-f]{8}…  connected_account\\.approved  stale\\. It was overtaken: the event signed at ${last} has replaced it\\.`,
          `    ${last}  [0-9a-f]{8}…  connected_account\\.declined  done\\. It has run, and is the latest event\\.`,
        ].join("\n"),
      ),
    );
    const json = await payhooks(["explain", "cm_1", "--json", "--sqlite", database]);
    expect(json.json()).toMatchObject([
      {
        state: "done",
        order: [
          { signedAt: first, state: "stale" },
          { signedAt: last, isLatest: true },
        ],
      },
      { state: "stale" },
    ]);
  });

  it("says when there is no such event, and what that may mean", async () => {
    const { database } = await application();
    for (const name of ["order-1", "f".repeat(48), "abcd"]) {
      const none = await payhooks(["explain", name, "--sqlite", database]);
      expect(none).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/^The inbox has no event with this/),
      });
    }
    expect(await payhooks(["explain", "--sqlite", database])).toMatchObject({ code: 2 });
    expect(await payhooks(["explain", "", "--sqlite", database])).toMatchObject({ code: 2 });
  });
});
