/** Everything that the judge says of a signed string: what the receiver keeps with a held entry, and what a person gets to see. */
import { describe, expect, it } from "vitest";
import { callbackJudge } from "../../src/flows/judgement.ts";
import { SPECIFIED_RULES } from "./specified-rules.ts";

const judge = callbackJudge(SPECIFIED_RULES);
const T = "2025-11-21T09:15:27Z";
const SIGNED_AT = Date.parse(T);
const HEAD = "amount=1&callbackUrl=https://m.example/cb&event=DEPOSIT&message=ok";
const TAIL = `referenceId=r&status=SUCCESS&timestamp=${T}`;
/** A pair of fields that can be a pair of fields, or part of the message before it. */
const pairs = (count: number): string =>
  Array.from({ length: count }, (_, i) => `&payTxnId=t${i}&providerTxId=p`).join("");
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `t${i}`);

const CERTAIN = {
  amount: "1",
  callbackUrl: "https://m.example/cb",
  event: "DEPOSIT",
  message: "ok",
  payTxnId: "t",
  referenceId: "r",
  status: "SUCCESS",
  timestamp: T,
};

describe("the certain part of a signed string", () => {
  it("is every field of a documented callback, and nothing is left out", () => {
    const judged = judge(`${HEAD}&payTxnId=t&${TAIL}&userId=u`);
    const texts = new Map(Object.entries({ ...CERTAIN, userId: "u" }));
    expect(judged).toEqual({ kind: "certain", texts, leftOut: [] });
  });

  it("lacks an optional field on which the readings do not agree, and that field is named", () => {
    const judged = judge(`${HEAD}&payTxnId=t&${TAIL}&userId=u&zone=1`);
    expect(judged).toEqual({
      kind: "certain",
      texts: new Map(Object.entries(CERTAIN)),
      leftOut: ["userId"],
    });
  });
});

describe("an ambiguous string", () => {
  it("names the fields in which its readings differ, and the events that it may be about", () => {
    expect(judge(`${HEAD}${pairs(2)}&${TAIL}`)).toEqual({
      kind: "ambiguous",
      detail: "its signature fits events that differ in payTxnId",
      signedTimes: [SIGNED_AT],
      mayName: ["r", "t0", "t1"],
      candidates: { ids: ["t0", "t1"], complete: true },
    });
  });

  it("has all candidates if there are eight", () => {
    expect(judge(`${HEAD}${pairs(8)}&${TAIL}`)).toMatchObject({
      mayName: ["r", ...ids(8)],
      candidates: { ids: ids(8), complete: true },
    });
  });

  it("has the first eight candidates if there are more, and says that there are others", () => {
    expect(judge(`${HEAD}${pairs(9)}&${TAIL}`)).toMatchObject({
      mayName: ["r", ...ids(8)],
      candidates: { ids: ids(8), complete: false },
    });
  });

  it("is found by eight of its references", () => {
    const undocumented = Array.from({ length: 9 }, (_, i) => `&s${i}=1`).join("");
    const judged = judge(`${HEAD}&payTxnId=t&referenceId=r${undocumented}&status=SUCCESS&timestamp=${T}`);
    const known = Array.from({ length: 8 }, (_, i) => `r${undocumented.slice(0, 5 * i)}`);
    expect(judged).toMatchObject({
      kind: "ambiguous",
      detail: expect.stringMatching(
        /^its signature fits events that differ in referenceId \(s0 is not documented: /,
      ),
      mayName: [...known, "t"],
    });
  });

  it("says that there may be other candidates, if it has one more that is in no reading", () => {
    expect(judge(`${HEAD}&payTxnId=t1&providerTxId=p&payTxnId=&payTxnId=t2&${TAIL}`)).toMatchObject({
      kind: "ambiguous",
      candidates: { ids: ["t1", "t2"], complete: false },
    });
  });

  it("is a string in which a field occurs twice, even if all readings agree", () => {
    expect(judge(`${HEAD}&payTxnId=a&payTxnId=b&${TAIL}`)).toEqual({
      kind: "ambiguous",
      detail: "its signed string repeats payTxnId",
      signedTimes: [SIGNED_AT],
      mayName: ["r", "b"],
      candidates: { ids: ["b"], complete: false },
    });
  });

  it("names all fields that occur in it twice", () => {
    const again = `&referenceId=r2&status=FAILED&timestamp=${T}`;
    expect(judge(`${HEAD}&payTxnId=t&${TAIL}${again}`)).toMatchObject({
      kind: "ambiguous",
      detail: "its signed string repeats referenceId, status, timestamp",
    });
  });

  it("names no undocumented field if it has none", () => {
    const judged = judge(`${HEAD}${pairs(2)}&${TAIL}`);
    expect(judged).toMatchObject({ detail: "its signature fits events that differ in payTxnId" });
  });
});

describe("a malformed string", () => {
  it("has the times of all its timestamps, and no candidates", () => {
    const times = `timestamp=${T}&timestamp=2025-11-22T00:00:00Z`;
    expect(judge(`${HEAD}&payTxnId=t&status=SUCCESS&${times}&userId=1`)).toEqual({
      kind: "malformed",
      detail: "referenceId is missing or empty",
      signedTimes: [SIGNED_AT, Date.parse("2025-11-22T00:00:00Z")],
      mayName: [],
      candidates: null,
    });
  });

  it("has no time if one of its timestamps cannot be read, since that one may be the true one", () => {
    for (const times of [`timestamp=yesterday&timestamp=${T}`, `timestamp=${T}&timestamp=yesterday`]) {
      expect(judge(`${HEAD}&payTxnId=t&referenceId=r&status=SUCCESS&${times}`)).toMatchObject({
        kind: "malformed",
        signedTimes: [],
      });
    }
  });

  it("has no time without a timestamp", () => {
    expect(judge(`${HEAD}&payTxnId=t&referenceId=r&status=SUCCESS`)).toMatchObject({
      kind: "malformed",
      detail: "timestamp is not an ISO 8601 date and time with its zone",
      signedTimes: [],
    });
  });
});
