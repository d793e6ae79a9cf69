import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { anyCallbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { escaped, shown } from "../src/command-line/printer.ts";
import { file, folder } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

/** Controls, hidden and turned text of every kind: C0, DEL, C1, direction, zero width, separators, tags outside of the BMP. */
const HOSTILE =
  "\u001b[2K\u0007\r\b\u007f\u009b2K\u009d0;title\u009c\u202eyb\u2066x\u2069\u200b\u200f\ufeff\u00ad\u2028\u2029\u{e0041}end";
const UNSAFE = /[^\n\t\P{Cc}]|[\p{Cf}\p{Zl}\p{Zp}]/u;

const keys = createTestKeys();
const publicKey = file(keys.publicKey, "public.pem");

/** A body that was signed for other fields, with a hostile name and hostile values. */
function hostileBody(): string {
  const fields = anyCallbackFields({ message: HOSTILE, referenceId: `r-${HOSTILE}` });
  const { rawBody } = signPaymentCallback(fields, keys.privateKey);
  return file(JSON.stringify({ ...JSON.parse(rawBody.toString()), [HOSTILE]: "x" }));
}

/** An inbox with a held event, and one that was given up, whose texts are hostile. */
async function hostileInbox(): Promise<string> {
  const path = join(folder, "hostile.sqlite");
  const inbox = sqliteInbox(path);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox,
    logger: silent,
  });
  const failing = (): never => {
    throw new Error(HOSTILE);
  };
  receiver.onDeposit(failing, { maxAttempts: 1 });
  receiver.onWithdrawal(() => {});
  await receiver.start();
  for (const changes of [{ referenceId: `r-${HOSTILE}` }, { status: "success", payTxnId: HOSTILE }]) {
    const { rawBody, headers } = signPaymentCallback(
      anyCallbackFields({ message: HOSTILE, ...changes }),
      keys.privateKey,
    );
    const get = (name: string): string | null => headers[name] ?? null;
    await receiver.payments.receive({ method: "POST", url: "/", headers: { get }, rawBody });
  }
  await receiver.close();
  return path;
}

describe("what the command line prints", () => {
  it("has no character that controls a terminal or hides text, as text and as JSON, from any command", async () => {
    const body = hostileBody();
    const inbox = await hostileInbox();
    const commands: readonly (readonly string[])[] = [
      ["verify", "--key", publicKey, body],
      ["verify", "--secret", "whsec_0123456789abcdef", "--header", `sha256=${HOSTILE}`, body],
      ["verify", "--key", publicKey, `missing-${HOSTILE}`],
      ["events", "--sqlite", inbox],
      ["events", "--reference", `r-${HOSTILE}`, "--sqlite", inbox],
      ["events", HOSTILE, "--sqlite", inbox],
      ["events", "replay", "--all", "--reason", "exhausted,unrecognized", "--dry-run", "--sqlite", inbox],
      [`unknown-${HOSTILE}`],
      ["verify", `--unknown-${HOSTILE}`],
    ];
    for (const command of commands) {
      for (const options of [[], ["--json"]]) {
        const { stdout, stderr } = await payhooks([...command, ...options]);
        for (const text of [stdout, stderr])
          expect(UNSAFE.exec(text)?.[0], `${command} ${text}`).toBeUndefined();
        if (options.length > 0)
          for (const line of stdout.trim().split("\n")) if (line !== "") JSON.parse(line);
        expect(stdout + stderr).not.toBe("");
      }
    }
  });

  it("goes through one printer: no other file writes to a stream", () => {
    const source = fileURLToPath(new URL("../src", import.meta.url));
    const writers = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .filter((name) =>
        /process\.(?:stdout|stderr)\.write|console\.|\)\.write\(/.test(
          readFileSync(join(source, name), "utf8"),
        ),
      );
    expect(writers).toEqual(["command-line/printer.ts"]);
  });
});

describe("a text from outside", () => {
  it("is shown on one line, and JSON reads its escapes back", () => {
    expect(UNSAFE.exec(shown(HOSTILE, 1_000))).toBeNull();
    expect(shown("a\nb\tc")).toBe("a\\u000ab\\u0009c");
    for (const character of ["\u0000", "\u009b", "\u202e", "\u{e0041}"]) {
      expect(JSON.parse(`"${escaped(character)}"`)).toBe(character);
    }
  });
});
