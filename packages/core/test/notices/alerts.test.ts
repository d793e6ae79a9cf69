import { type Alert, memoryInbox } from "@payhooks/core";
import {
  anyCallbackFields,
  callbackFields,
  createTestKeys,
  fakeClock,
  forgedCallback,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { type AlertOptions, DeliveryAlerts } from "../../src/notices/delivery-alerts.ts";
import { busyMs, codeOfReply, setUp, thrownBy } from "../receiving.ts";

const MINUTE = 60_000;

function watch(options: AlertOptions = {}, clock = fakeClock()) {
  const posted: Alert[] = [];
  const alerts = new DeliveryAlerts(options, clock, (alert) => posted.push(alert));
  const fail = (times: number, address: string | null = "a"): void => {
    for (let i = 0; i < times; i++) alerts.recordFailure("payments", "ERR_SIGNATURE_INVALID", address);
  };
  return { clock, posted, alerts, fail };
}

describe("an alert", () => {
  it("is raised at the threshold, not before it", () => {
    const { fail, posted } = watch();
    fail(9);
    expect(posted).toEqual([]);
    fail(1);
    expect(posted).toEqual([
      {
        type: "alert",
        kind: "all-failing",
        flow: "payments",
        code: "ERR_SIGNATURE_INVALID",
        address: null,
        failures: 10,
        addresses: 1,
        windowMs: 5 * MINUTE,
      },
    ]);
  });

  it("counts what happened within the window only", async () => {
    const { clock, fail, posted } = watch({ threshold: 3, windowMs: MINUTE });
    for (let i = 0; i < 20; i++) {
      fail(1);
      await clock.advance(31_000);
    }
    expect(posted).toEqual([]);
    fail(2);
    expect(posted).toHaveLength(1);
  });

  it("counts over the edge of the window's parts", async () => {
    const { clock, fail, posted } = watch({ threshold: 10, windowMs: 10 * MINUTE });
    for (let i = 0; i < 10; i++) {
      fail(1);
      await clock.advance(50_000);
    }
    expect(posted).toHaveLength(1);
  });

  it("begins anew after a long silence", async () => {
    const { clock, fail, posted } = watch({ threshold: 3 });
    fail(2);
    await clock.advance("365d");
    fail(2);
    expect(posted).toEqual([]);
  });

  it("is not repeated within its cool-down, and is repeated after it", async () => {
    const { clock, fail, posted } = watch({ threshold: 3, cooldownMs: 15 * MINUTE });
    fail(100);
    await clock.advance(15 * MINUTE - 1);
    fail(100);
    expect(posted).toHaveLength(1);
    await clock.advance(2);
    fail(3);
    expect(posted).toHaveLength(2);
  });

  it.each([
    { cooldownMs: 0 },
    { windowMs: 0 },
    { cooldownMs: 1.5 },
    { threshold: 0 },
    { windowMs: Number.NaN },
  ])("are refused with %o", (options) => {
    expect(thrownBy(() => watch(options)).code).toBe("ERR_OPTION_INVALID");
  });

  it("is repeated after its cool-down, and counts the window, also if the wall clock was set back", async () => {
    let backMs = 0;
    const steady = fakeClock();
    const clock = { ...steady, now: () => steady.now() - backMs };
    const { fail, posted } = watch({ threshold: 3, windowMs: MINUTE, cooldownMs: 15 * MINUTE }, clock);
    fail(3);
    backMs = 24 * 60 * MINUTE;
    await clock.advance(15 * MINUTE + 1);
    fail(2);
    expect(posted).toHaveLength(1);
    fail(1);
    expect(posted).toMatchObject([{ failures: 3 }, { failures: 3 }]);
  });

  it("reports that every delivery from every address fails: a wrong or rotated key", () => {
    const { fail, posted } = watch();
    for (let i = 0; i < 10; i++) fail(1, `192.0.2.${i}`);
    expect(posted).toMatchObject([{ kind: "all-failing", address: null, failures: 10, addresses: 10 }]);
  });

  it("reports that one address probes while others succeed", () => {
    const { alerts, fail, posted } = watch();
    for (let i = 0; i < 9; i++) {
      fail(1, "192.0.2.66");
      alerts.recordSuccess("payments");
      fail(1, "192.0.2.67");
    }
    expect(posted).toEqual([]);
    fail(1, "192.0.2.66");
    expect(posted).toMatchObject([{ kind: "probing", address: "192.0.2.66", failures: 10, addresses: 2 }]);
    fail(1, "192.0.2.67");
    expect(posted).toMatchObject([{}, { kind: "probing", address: "192.0.2.67" }]);
  });

  it.each([
    ["one address", () => "192.0.2.1"],
    ["many addresses", (n: number) => `192.0.2.${n}`],
    ["an address that is not known", () => null],
  ])(
    "reports a rotation although everything had just succeeded, from %s: nothing verifies any more",
    (_, addressOf) => {
      const { alerts, fail, posted } = watch();
      for (let i = 0; i < 50; i++) alerts.recordSuccess("payments");
      for (let i = 0; i < 10; i++) fail(1, addressOf(i));
      expect(posted).toMatchObject([{ kind: "all-failing", address: null, failures: 10 }]);
      // With the new key it goes on, and the failures of the old one are no attack.
      alerts.recordSuccess("payments");
      expect(posted).toHaveLength(1);
    },
  );

  it("reports an attack that began in a quiet hour once something genuine has come in between", () => {
    const { alerts, fail, posted } = watch();
    fail(12, "192.0.2.66");
    expect(posted).toMatchObject([{ kind: "all-failing" }]);
    alerts.recordSuccess("payments");
    fail(1, "192.0.2.66");
    expect(posted).toMatchObject([{}, { kind: "probing", address: "192.0.2.66", failures: 13 }]);
  });

  it("comes for addresses that are not known too", () => {
    const { alerts, fail, posted } = watch();
    fail(9, null);
    alerts.recordSuccess("payments");
    fail(1, null);
    expect(posted).toMatchObject([{ kind: "probing", address: null }]);
  });

  it("reports a wrong key once the last success is out of the window", async () => {
    const { alerts, clock, fail, posted } = watch();
    alerts.recordSuccess("payments");
    await clock.advance(6 * MINUTE);
    for (let i = 0; i < 10; i++) fail(1, `192.0.2.${i}`);
    expect(posted).toMatchObject([{ kind: "all-failing" }]);
  });

  it("keeps the flows apart", () => {
    const { alerts, fail, posted } = watch();
    alerts.recordSuccess("connect");
    fail(9);
    alerts.recordFailure("connect", "ERR_SIGNATURE_MISSING", "a");
    expect(posted).toEqual([]);
    fail(1);
    expect(posted).toMatchObject([{ flow: "payments", kind: "all-failing" }]);
  });

  it("takes bounded memory and time with 100,000 addresses", () => {
    const { alerts, fail, posted } = watch({ threshold: 100_000 });
    fail(1, "warm-up");
    const ms = busyMs(() => {
      for (let i = 1; i < 100_000; i++) fail(1, `address-${i}`);
    });
    expect(ms).toBeLessThan(5_000);
    // All are counted, but only the last thousand are known by name.
    expect(posted).toMatchObject([{ failures: 100_000, addresses: 1_000 }]);
    alerts.recordSuccess("payments");
    expect(posted).toHaveLength(1);
  });

  it("names ten addresses within a cool-down, and of more only how many they are", async () => {
    const { alerts, clock, fail, posted } = watch({ threshold: 2, cooldownMs: 15 * MINUTE });
    const probe = (from: number, to: number): void => {
      for (let n = from; n < to; n++) {
        fail(1, `address-${n}`);
        alerts.recordSuccess("payments");
        fail(1, `address-${n}`);
        alerts.recordSuccess("payments");
      }
    };
    probe(0, 3_000);
    expect(posted).toHaveLength(11);
    expect(posted[9]).toMatchObject({ kind: "probing", address: "address-9", failures: 2, addresses: 10 });
    expect(posted[10]).toMatchObject({ kind: "probing", address: null, failures: 22, addresses: 11 });
    await clock.advance(20 * MINUTE);
    probe(3_000, 3_001);
    expect(posted[11]).toMatchObject({ kind: "probing", address: "address-3000", addresses: 1 });
  });

  it("is raised when too many are held, once per cool-down", async () => {
    const { alerts, clock, posted } = watch({ cooldownMs: MINUTE });
    alerts.recordHeldFull("payments");
    alerts.recordHeldFull("payments");
    expect(posted).toMatchObject([{ kind: "held-full", code: "ERR_HELD_FULL" }]);
    await clock.advance(MINUTE + 1);
    alerts.recordHeldFull("payments");
    expect(posted).toHaveLength(2);
  });
});

describe("a receiver", () => {
  const { publicKey, privateKey } = createTestKeys();
  const forged = () => forgedCallback(callbackFields(), { amount: "99999.000000" }, privateKey);
  const alertsOf = (t: Awaited<ReturnType<typeof setUp>>) => t.notices.filter(({ type }) => type === "alert");

  it("alerts after repeated failures, and writes one line, not one per delivery", async () => {
    const t = await setUp({ payments: { publicKey } });
    const sent = forged();
    for (let i = 0; i < 25; i++) await t.post("payments", sent);
    expect(alertsOf(t)).toMatchObject([{ kind: "all-failing", code: "ERR_SIGNATURE_INVALID", addresses: 1 }]);
    expect(t.lines.filter(([level]) => level === "error")).toHaveLength(1);
    expect(t.notices.filter(({ type }) => type === "refused")).toHaveLength(25);
  });

  it("names the address that probes", async () => {
    const t = await setUp({ payments: { publicKey }, alerts: { threshold: 3 } });
    for (let i = 0; i < 3; i++) {
      await t.post("payments", signPaymentCallback(callbackFields(), privateKey));
      await t.post("payments", forged(), { remoteAddress: "198.51.100.7" });
    }
    expect(alertsOf(t)).toMatchObject([{ kind: "probing", address: "198.51.100.7", failures: 3 }]);
  });

  it("does not count other refusals as failures of a signature", async () => {
    const t = await setUp({ payments: { publicKey }, alerts: { threshold: 1 } });
    const old = callbackFields({}, Date.now() - 30 * 24 * 60 * MINUTE);
    expect((await t.post("payments", signPaymentCallback(old, privateKey))).status).toBe(400);
    expect(alertsOf(t)).toMatchObject([{ kind: "refused" }]);
    await t.post("payments", { rawBody: Buffer.from("{"), headers: { "content-type": "application/json" } });
    await t.post("payments", { rawBody: Buffer.from("{}"), headers: { "content-type": "text/plain" } });
    expect(alertsOf(t)).toHaveLength(1);
  });

  it("alerts at the first authentic delivery that is refused for its time, and after each cool-down", async () => {
    const t = await setUp({ payments: { publicKey } });
    const old = signPaymentCallback(callbackFields({}, t.clock.now() - 30 * 24 * 60 * MINUTE), privateKey);
    for (let i = 0; i < 20; i++) await t.post("payments", old);
    const facts = { kind: "refused", code: "ERR_TIMESTAMP_EXPIRED", address: null, addresses: 0 };
    expect(alertsOf(t)).toMatchObject([{ ...facts, failures: 1 }]);
    await t.clock.advance(16 * MINUTE);
    await t.post("payments", old);
    expect(alertsOf(t)).toMatchObject([facts, { ...facts, failures: 1 }]);
  });

  it("alerts at the threshold of authentic deliveries that it cannot store, and not of stored ones", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxUnfinished: 1 });
    const options = { payments: { publicKey }, alerts: { threshold: 3 }, run: "elsewhere" } as const;
    const t = await setUp({ ...options, inbox }, clock);
    const waiting = signPaymentCallback(callbackFields(), privateKey);
    for (let i = 0; i < 5; i++) expect((await t.post("payments", waiting)).status).toBe(200);
    const codes = [];
    for (let i = 0; i < 4; i++) {
      codes.push(codeOfReply(await t.post("payments", signPaymentCallback(callbackFields(), privateKey))));
    }
    expect(codes).toEqual(Array(4).fill("ERR_INBOX_FULL"));
    expect(alertsOf(t)).toMatchObject([{ kind: "refused", code: "ERR_INBOX_FULL", failures: 3 }]);
  });

  it("answers 503 and alerts when it holds too many, while other deliveries go on", async () => {
    const t = await setUp({ payments: { publicKey }, limits: { maxHeld: 2 } });
    const malformed = () => signPaymentCallback(anyCallbackFields({ status: "success" }), privateKey);
    const codes = [];
    for (let i = 0; i < 4; i++) codes.push(codeOfReply(await t.post("payments", malformed())));
    expect(codes).toEqual([null, null, "ERR_HELD_FULL", "ERR_HELD_FULL"]);
    expect(alertsOf(t)).toMatchObject([{ kind: "held-full" }]);
    expect(await t.held()).toHaveLength(2);
    expect(await t.post("payments", signPaymentCallback(callbackFields(), privateKey))).toMatchObject({
      status: 200,
    });
    expect(t.ran).toHaveLength(1);
  });
});
