/**
 * Counts the work that a request may cost the others, who wait for it: everything that is done with a body of 64 KiB, the search
 * for the readings of an ambiguous one apart. `npm run bench -- --abuse` shows the times.
 */
import { createReceiver, memoryInbox } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../packages/core/src/time/clock.ts";
import { silent } from "../support/silent.ts";
import { type Heavy, heavyDeliveries } from "./fuzz/heavy.ts";
import { KEYS, NOW, SECRET } from "./fuzz/signed.ts";
import { report } from "./report.ts";

/** The engine's work while a request was answered and its event run. */
interface Steps {
  jsonTexts: number;
  jsonCharacters: number;
  urls: number;
  /** Of the longest host: the engine takes time in the square of it. */
  hostCharacters: number;
  matches: number;
  sorted: number;
  frozen: number;
}

const BOUNDS: Steps = {
  jsonTexts: 2_000,
  jsonCharacters: 3 * 65_536,
  urls: 2,
  hostCharacters: 512,
  matches: 30_000,
  sorted: 2_000,
  frozen: 10_000,
};

const HOST = /^[^:/]*:\/\/([^/?#\\]*)/;

/** Counts what is asked of the engine by replacing what is asked, until it is put back. */
function counting(): { readonly steps: Steps; putBack(): void } {
  const steps: Steps = {
    jsonTexts: 0,
    jsonCharacters: 0,
    urls: 0,
    hostCharacters: 0,
    matches: 0,
    sorted: 0,
    frozen: 0,
  };
  const { parse } = JSON;
  const { canParse } = URL;
  const { exec } = RegExp.prototype;
  const { sort } = Array.prototype;
  const { freeze } = Object;
  JSON.parse = (text, ...rest) => {
    steps.jsonTexts++;
    steps.jsonCharacters += text.length;
    return parse(text, ...rest);
  };
  URL.canParse = (url, ...rest) => {
    steps.urls++;
    const host = exec.call(HOST, String(url))?.[1] ?? "";
    steps.hostCharacters = Math.max(steps.hostCharacters, host.length);
    return canParse.call(URL, url, ...rest);
  };
  RegExp.prototype.exec = function (text) {
    steps.matches++;
    return exec.call(this, text);
  };
  Array.prototype.sort = function (...rest) {
    steps.sorted += this.length;
    return sort.apply(this, rest);
  };
  Object.freeze = (<T>(object: T): Readonly<T> => {
    steps.frozen++;
    return freeze(object);
  }) as typeof Object.freeze;
  const putBack = (): void => {
    JSON.parse = parse;
    URL.canParse = canParse;
    RegExp.prototype.exec = exec;
    Array.prototype.sort = sort;
    Object.freeze = freeze;
  };
  return { steps, putBack };
}

/** Answers a delivery and runs its event, in a receiver of its own. */
async function stepsOf({ flow, body, headers }: Heavy): Promise<{ steps: Steps; answer: string }> {
  const clock = { ...systemClock, now: () => NOW };
  const receiver = createReceiver({
    payments: { publicKey: KEYS.publicKey },
    connect: { secret: SECRET },
    inbox: memoryInbox({ clock }),
    clock,
    run: "after-response",
    logger: silent,
  });
  receiver.onDeposit(() => {}).onSettlementApproved(() => {});
  await receiver.start();
  const work: Promise<unknown>[] = [];
  const delivery = {
    method: "POST",
    url: "/",
    headers: { get: (name: string) => headers[name] ?? null },
    rawBody: body,
    waitUntil: (promise: Promise<unknown>) => work.push(promise),
  };
  const { steps, putBack } = counting();
  try {
    const reply = await receiver[flow].receive(delivery);
    await Promise.all(work);
    return { steps, answer: `${reply.status} ${reply.body}` };
  } finally {
    putBack();
    await receiver.close({ graceMs: 0 });
  }
}

const ANSWERS = {
  payments: {
    signed: /^(?:200|400 .*ERR_BODY_NOT_JSON|400 .*ERR_TIMESTAMP_EXPIRED)/,
    unsigned: /^(?:401 .*ERR_SIGNATURE_INVALID|400 .*ERR_BODY_NOT_JSON)/,
  },
  connect: { signed: /^200/, unsigned: /^400 .*ERR_SIGNATURE_INVALID/ },
} as const;

describe("a request of 64 KiB", () => {
  const heavy = heavyDeliveries();

  it.each(heavy)("with $name, $flow, signed: $signed, takes a bounded number of steps", async (delivery) => {
    const { steps, answer } = await stepsOf(delivery);
    expect(answer).toMatch(ANSWERS[delivery.flow][delivery.signed ? "signed" : "unsigned"]);
    for (const name of Object.keys(BOUNDS) as (keyof Steps)[]) {
      expect(steps[name], name).toBeLessThanOrEqual(BOUNDS[name]);
    }
  });

  it("is counted: the counters see each call of the engine", async () => {
    const named = (wanted: string): Heavy => {
      const found = heavy.find(({ name, flow, signed }) => name === wanted && flow === "payments" && signed);
      if (found === undefined) throw new Error(`there is no ${wanted}`);
      return found;
    };
    // A URL that is the one before it is not looked at again.
    await stepsOf(named("a long timestamp"));
    const { steps: ofUrl } = await stepsOf(named("a URL of many steps"));
    expect(ofUrl).toMatchObject({ urls: 1, hostCharacters: 1 });
    const { steps } = await stepsOf(named("as many numbers as may be"));
    // Each name is read again from the text, for the spelling of its number.
    for (const name of ["jsonTexts", "sorted"] as const) expect(steps[name]).toBeGreaterThan(980);
    expect(ofUrl.frozen).toBeGreaterThan(0);
    report({ proof: "steps of requests of 64 KiB", cases: heavy.length, note: "each within its bounds" });
  });
});
