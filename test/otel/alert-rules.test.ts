/** When the rules of examples/prometheus fire, as Prometheus's own tool computes it. */
import { afterAll, describe, expect, it } from "vitest";
import { Scope } from "../faults/harness/scope.ts";
import { differences } from "./prometheus-server.ts";

const scope = new Scope();
afterAll(() => scope.close());

describe.each([
  {
    alert: "PayhooksDeliveriesRefused",
    counter: 'payhooks_alerts_total{instance="shop-1",error_type="ERR_TIMESTAMP_EXPIRED"}',
    labels: { error_type: "ERR_TIMESTAMP_EXPIRED" },
  },
  {
    alert: "PayhooksDoubleRisk",
    counter: 'payhooks_double_risks_total{instance="shop-1",payhooks_why="lease-lost"}',
    labels: { payhooks_why: "lease-lost" },
  },
])("$alert", ({ alert, counter, labels }) => {
  it("fires at the first count, and ends when nothing more is counted", () => {
    const firing = { 19: [], 20: [labels], 34: [labels], 36: [], 100: [] };
    expect(differences(scope, alert, { series: { [counter]: "_x20 1x100" }, firing })).toBe("");
  });

  it("fires at a later count, and at the first one of a process that is new", () => {
    const firing = { 29: [], 32: [labels], 48: [], 70: [labels], 90: [] };
    const series = {
      [counter]: "1x30 2x70",
      [counter.replace("shop-1", "shop-2")]: "_x70 1x30",
    };
    expect(differences(scope, alert, { series, firing })).toBe("");
  });

  it("does not fire again because scrapes failed for some minutes", () => {
    const series = { [counter]: "1x30 stale _x8 1x60" };
    const firing = { 31: [], 41: [], 46: [], 50: [], 56: [], 71: [] };
    expect(differences(scope, alert, { series, firing })).toBe("");
  });
});

describe("PayhooksAcceptSlow", () => {
  /** Ten deliveries a minute, each of which was answered within the bound, and after the one before it. */
  function answeredWithin(seconds: number): Readonly<Record<string, string>> {
    const bounds = [0.5, 0.75, 1, 2.5, 5, Number.POSITIVE_INFINITY];
    return Object.fromEntries(
      bounds.map((bound) => [
        `messaging_client_operation_duration_bucket{messaging_system="payhooks",le="${bound === Number.POSITIVE_INFINITY ? "+Inf" : bound}"}`,
        bound >= seconds ? "0+10x30" : "0x30",
      ]),
    );
  }

  it("fires if deliveries are refused at the default acceptTimeoutMs of two seconds, and not if they take a second", () => {
    expect(
      differences(scope, "PayhooksAcceptSlow", { series: answeredWithin(2.5), firing: { 20: [{}] } }),
    ).toBe("");
    expect(differences(scope, "PayhooksAcceptSlow", { series: answeredWithin(1), firing: { 20: [] } })).toBe(
      "",
    );
  });
});
