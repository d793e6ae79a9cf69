import { PayhooksError } from "../../protocol/errors.ts";
import type { SharedTexts, TextChange } from "../contract/texts.ts";
import { hashOf } from "../record/keys.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import { contentOf, sideRecord } from "../record/side-record.ts";
import type { Records } from "./records.ts";

/** A text is deleted this long after it was last written. */
export const TEXT_TTL_MS: number = 30 * 24 * 60 * 60_000;
const MAX_TEXT_CHARS = 16_000;
const TEXT_DEADLINE_MS = 2_000;
/** A name that a person can read. */
const TEXT_NAME_PATTERN = /^[a-z][a-z0-9:-]{0,62}$/;

/** The texts of an inbox. Each is in a side record, so every store has a place for it. */
export function sharedTexts(records: Records, ready: () => Promise<void>): SharedTexts {
  async function change<T>(name: string, compute: TextChange<T>): Promise<T> {
    checkName(name);
    await ready();
    const { answer } = await records.change<T>({
      key: hashOf(["shared", name], 32),
      deadlineMs: TEXT_DEADLINE_MS,
      change: (record, now) => {
        const { answer, text } = compute(record === null ? null : (contentOf(record).text ?? null), now);
        return { answer, record: text === null ? null : recordOf(text, now) };
      },
    });
    return answer;
  }
  return { change, read: (name) => change(name, (text) => ({ answer: text, text: null })) };
}

function recordOf(text: string, now: number): IdempotencyRecord {
  if (text.length > MAX_TEXT_CHARS) {
    throw new PayhooksError("ERR_OPTION_INVALID", `A shared text has ${text.length} characters.`, {
      fix: `Keep it below ${MAX_TEXT_CHARS} characters.`,
    });
  }
  return sideRecord({
    flow: "payments",
    tenant: "",
    id: "",
    isClosed: true,
    content: { text },
    lease: null,
    signedAt: 0,
    expiresAt: now + TEXT_TTL_MS,
  });
}

function checkName(name: string): void {
  if (typeof name === "string" && TEXT_NAME_PATTERN.test(name)) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `Not a name: ${JSON.stringify(String(name).slice(0, 80))}.`, {
    fix: "Use up to 63 lowercase letters, digits, - and :, beginning with a letter.",
  });
}
