import { readFileSync } from "node:fs";
import { createReceiver } from "@payhooks/core";
import { type OldAnswer, type Shadow, type ShadowLine, shadow } from "@payhooks/core/shadow";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  createTestKeys,
  forgedCallback,
  resplitPair,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { ROWS, type Row, reportOf } from "../src/shadow/report.ts";
import { file, folder } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
let inboxes = 0;

/** A shadow, and the journal that it writes. */
function inTheShadow(): { readonly beside: Shadow; readonly lines: string[] } {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(`${folder}/shadow-${++inboxes}.db`),
    run: "elsewhere",
    logger: silent,
  });
  onTestFinished(() => void receiver.close());
  const lines: string[] = [];
  return { beside: shadow(receiver, { journal: (line) => void lines.push(line) }), lines };
}

function callback(payTxnId: string, more: object = {}): SignedDelivery {
  const fields = { payTxnId, referenceId: `order-${payTxnId}`, userId: "Abebe", ...more };
  return signPaymentCallback(callbackFields(fields), keys.privateKey);
}

const deposit = (id: string, status = "SUCCESS") => ({ id, event: "DEPOSIT", status });

/** A journal in which every row has something. */
async function everyRow(): Promise<string[]> {
  const { beside, lines } = inTheShadow();
  const give = (sent: SignedDelivery, old: OldAnswer | Promise<never>) =>
    beside.delivered("payments", sent, old);
  await give(callback("both"), "accepted");
  await give(callback("both"), "duplicate");
  await beside.handled(deposit("both"));
  await give(callback("pending", { status: "PENDING" }), "accepted");
  const forged = () => forgedCallback(callbackFields(), { amount: "1.000000" }, keys.privateKey);
  await give(forged(), "refused");
  await give(forged(), "accepted");
  await give(callback("twice"), "accepted");
  await beside.handled(deposit("twice"));
  await beside.handled(deposit("twice"));
  await give(callback("strange"), "refused");
  await give(callback("silent"), Promise.reject(new Error("it died")));
  await give(callback("open"), "accepted");
  await give(callback("copy"), "duplicate");
  await beside.handled(deposit("only-old"));
  await give(resplitPair("order-1", keys.privateKey).forged, "accepted");
  await give(callback("old", { timestamp: "2020-01-01T00:00:00Z" }), "accepted");
  await beside.handled({ id: "not-marked", event: "DEPOSIT", status: "PAID" });
  const away = {
    type: "delivery",
    at: Date.now(),
    flow: "payments",
    body: "00ff",
    old: "accepted",
    status: 503,
  };
  lines.push(
    `${JSON.stringify({ ...away, outcome: "refused", code: "ERR_INBOX_UNAVAILABLE", reason: null, eventId: null, event: null })}\n`,
  );
  return lines;
}

describe("payhooks shadow", () => {
  it("names every event in the row that it belongs to, and nothing of it but ids", async () => {
    const journal = file((await everyRow()).join(""));
    const { code, stdout, json } = await payhooks(["shadow", journal, "--json"]);
    expect(code).toBe(1);
    const [head, ...rows] = json<{ row: Row; events: { id: string | null; why: string | null }[] }>();
    expect(head).toMatchObject({ deliveries: 13 });
    expect(
      Object.fromEntries(rows.map(({ row, events }) => [row, events.map(({ id, why }) => [id, why])])),
    ).toEqual({
      both: [["both", null]],
      pending: [["pending", null]],
      "refused-by-both": [[null, "ERR_SIGNATURE_INVALID"]],
      forged: [[null, "ERR_SIGNATURE_INVALID"]],
      twice: [["twice", "2 times"]],
      "refused-by-old": [["strange", null]],
      unanswered: [["silent", null]],
      open: [["open", null]],
      copy: [["copy", null]],
      "only-old": [["only-old", null]],
      held: [[null, "ambiguous"]],
      "refused-by-payhooks": [["old", "ERR_TIMESTAMP_EXPIRED"]],
      "not-recorded": [[null, "ERR_INBOX_UNAVAILABLE"]],
      "not-marked": [["not-marked", null]],
    });
    const text = await payhooks(["shadow", journal]);
    for (const output of [stdout, text.stdout]) expect(output).not.toMatch(/Abebe|order-|10\.5/);
    expect(text.stdout).toContain("Look at the differences before the switch.");
    expect(text.stdout).toMatch(
      / {5}1 {2}not authentic for Payhooks, but accepted by the old receiver\n.*body [0-9a-f]{16}/,
    );
  });

  it("counts a report that was made again, since it could not be recorded, once", async () => {
    const event = { flow: "payments", tenant: null, id: "p", event: "DEPOSIT", status: "SUCCESS" };
    const line = (at: number, facts: object) =>
      `${JSON.stringify({ at, flow: "payments", event, ...facts })}\n`;
    const marked = (state: string | null) => ({ type: "marked", as: "handled", state, eventId: "e" });
    const answered = { body: "00ff", status: 200, code: null, reason: null, eventId: "e" };
    const journal = [
      line(1, { type: "delivery", old: "accepted", outcome: "new", ...answered }),
      line(2, { type: "handled" }),
      line(3, marked(null)),
      line(4, { type: "handled" }),
      line(5, marked("done")),
    ];
    const rowsOf = async (lines: readonly string[]) => {
      const { json } = await payhooks(["shadow", file(lines.join("")), "--json"]);
      const [, ...rows] = json<{ row: Row; events: unknown[] }>();
      return rows.filter(({ events }) => events.length > 0).map(({ row }) => row);
    };
    expect(await rowsOf(journal)).toEqual(["both"]);
    expect(await rowsOf(journal.slice(0, 4))).toEqual(["not-marked"]);
    expect(await rowsOf([...journal, line(6, { type: "handled" })])).toEqual(["twice"]);
  });

  it("ends with 0 if both have done the same, from several journals together and from the standard input", async () => {
    const { beside, lines } = inTheShadow();
    await beside.delivered("payments", callback("one"), "accepted");
    const [route] = [[...lines]];
    lines.length = 0;
    await beside.handled(deposit("one"));
    const alone = await payhooks(["shadow", file(route.join(""))]);
    expect(alone).toMatchObject({ code: 1 });
    expect(alone.stdout).toContain("has not said that it handled them");
    const both = await payhooks(["shadow", file(route.join("")), "-"], { input: lines.join("") });
    expect(both).toMatchObject({ code: 0 });
    expect(both.stdout).toContain("There is no difference.");
  });

  it("leaves out a last line that was not written completely, and refuses a file that is not a journal", async () => {
    const { beside, lines } = inTheShadow();
    await beside.delivered("payments", callback("one"), "accepted");
    await beside.handled(deposit("one"));
    expect((await payhooks(["shadow", file(`${lines.join("")}{"type":"hand`)])).code).toBe(0);
    for (const text of [
      `{"type":"hand\n`,
      "null\n",
      '{"type":"handled","at":1}\n',
      '{"type":"other","at":1,"event":null}\n',
    ]) {
      const { code, stderr } = await payhooks(["shadow", file(lines.join("") + text)]);
      expect(code, text).toBe(2);
      expect(stderr).toContain(`Line ${lines.length + 1} of`);
      expect(stderr).toContain("ERR_JOURNAL_INVALID");
    }
  });

  it("reads a journal of 150,000 deliveries, even if all of them have the same body", async () => {
    const refused = { type: "delivery", flow: "payments", event: null, eventId: null, body: "00ff" };
    const answer = { old: "accepted", outcome: "refused", reason: null, status: 401 };
    const line = (at: number) =>
      `${JSON.stringify({ ...refused, ...answer, code: "ERR_SIGNATURE_INVALID", at })}\n`;
    const journal = file(Array.from({ length: 150_000 }, (_, at) => line(at)).join(""));
    const { code, stdout, stderr } = await payhooks(["shadow", journal]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toMatch(/^150000 deliveries, /);
    expect(stdout).toMatch(/ {5}1 {2}not authentic for Payhooks, but accepted by the old receiver\n/);
  });

  it("shows at most --limit events of a row", async () => {
    const { beside, lines } = inTheShadow();
    for (let at = 0; at < 3; at++) await beside.delivered("payments", callback(`open-${at}`), "accepted");
    const { stdout } = await payhooks(["shadow", file(lines.join("")), "--limit", "2"]);
    expect(stdout).toContain("open-1");
    expect(stdout).not.toContain("open-2");
    expect(stdout).toContain("… and 1 more");
  });
});

describe("the report", () => {
  it("has the rows that the guide explains, in the same order", () => {
    const guide = readFileSync(new URL("../../../docs/guides/moving.md", import.meta.url), "utf8");
    const [, table = ""] = guide.split("## The report");
    const explained = [...table.matchAll(/^\| `([a-z-]+)`/gm)].map(([, row]) => row);
    expect(explained).toEqual(Object.keys(ROWS));
  });

  const linesOf = (texts: readonly string[]): ShadowLine[] => texts.map((text) => JSON.parse(text));

  it("says of an event that is not marked if it is not tried again", () => {
    const event = { flow: "payments", tenant: null, id: "p", event: "DEPOSIT", status: "SUCCESS" };
    const marked = { type: "marked", as: "handled", event, eventId: null, state: null } as const;
    const dropped = { ...marked, at: 2, dropped: true } as const;
    const whyOf = (...lines: Parameters<typeof reportOf>[0]) =>
      reportOf(lines).rows["not-marked"].map(({ why }) => why);
    expect(whyOf({ ...marked, at: 1 })).toEqual([null]);
    expect(whyOf(dropped)).toEqual(["not tried again"]);
    expect(whyOf(dropped, { ...marked, at: 3, state: "done" })).toEqual([]);
  });

  it("does not report an event that was recorded or marked only later", async () => {
    const { beside, lines } = inTheShadow();
    await beside.delivered("payments", callback("late"), "accepted");
    await beside.handled(deposit("late"));
    const [delivery, handled, marked] = linesOf(lines);
    if (delivery?.type !== "delivery" || handled === undefined || marked?.type !== "marked")
      throw new Error();
    const refused = {
      ...delivery,
      status: 503,
      code: "ERR_INBOX_UNAVAILABLE",
      outcome: "refused",
      eventId: null,
    };
    const unmarked = { ...marked, state: null };
    const { rows } = reportOf([{ ...refused, event: null }, refused, delivery, handled, unmarked, marked]);
    expect(rows.both.map(({ id }) => id)).toEqual(["late"]);
    expect(rows["not-marked"]).toEqual([]);
    expect(rows["not-recorded"]).toEqual([]);
  });
});
