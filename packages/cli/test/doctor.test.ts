import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { canonicalString, verifyRsaSignature } from "@payhooks/core/signature";
import { createTestKeys } from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { file, folder } from "./support/files.ts";
import { type HandWritten, handWritten, headerOf, listen, rightly } from "./support/receivers.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
const privateKey = file(keys.privateKey, "private.pem");
const secret = "whsec_0123456789abcdef";

interface Report {
  readonly healthy: boolean;
  readonly findings: readonly {
    fault: string;
    severity: string;
    probes: string[];
    what: string;
    fix: string;
  }[];
  readonly probes: readonly { name: string; status: number | null }[];
  readonly notSent: readonly string[];
}

type Flow = "payments" | "connect";

async function examine(
  flow: Flow,
  url: string,
  ...more: string[]
): Promise<Report & { exit: number | null }> {
  const key = flow === "payments" ? ["--private-key", privateKey] : ["--secret", secret];
  const ended = await payhooks(["doctor", url, ...key, ...more, "--json"]);
  const [report] = ended.json<Report>();
  if (report === undefined) throw new Error(ended.stderr);
  return { ...report, exit: ended.code };
}

const faults = ({ findings }: Report): string[] =>
  findings.filter(({ severity }) => severity === "error").map(({ fault }) => fault);

const right: Record<Flow, HandWritten> = {
  payments: { verify: rightly({ publicKey: keys.publicKey }) },
  connect: { verify: rightly({ secret }), badSignature: 400 },
};
const flows: readonly Flow[] = ["payments", "connect"];

describe.each(flows)("payhooks doctor on a hand-written receiver of %s", (flow) => {
  it("finds nothing wrong with a right one", async () => {
    const report = await examine(flow, await handWritten(right[flow]));
    expect(report).toMatchObject({ exit: 0, healthy: true, findings: [], notSent: [] });
    expect(report.probes.length).toBeGreaterThan(20);
  });

  it("finds one that answers 200 to a bad signature", async () => {
    const report = await examine(flow, await handWritten({ ...right[flow], badSignature: 200 }));
    expect(faults(report)).toEqual(["accepts-forged"]);
    expect(report).toMatchObject({ exit: 1, healthy: false });
    expect(report.findings[0]?.probes).toContain(
      flow === "payments" ? "amount changed after signing" : "header of another body",
    );
  });

  it("finds one that answers a bad signature with a status of its own", async () => {
    expect(faults(await examine(flow, await handWritten({ ...right[flow], badSignature: 403 })))).toEqual([
      "wrong-status",
    ]);
    expect(faults(await examine(flow, await handWritten({ ...right[flow], badSignature: 500 })))).toEqual([
      "server-error",
    ]);
  });

  it("finds one that fails on duplicates", async () => {
    const report = await examine(flow, await handWritten({ ...right[flow], duplicate: 500 }));
    expect(faults(report)).toEqual(["fails-on-duplicates"]);
    expect(report.findings[0]?.what).toContain("500");
    expect(report.exit).toBe(1);
  });

  it("finds one that never answers, and does not wait for every probe", async () => {
    const report = await examine(flow, await listen(() => {}), "--timeout", "300");
    expect(faults(report)).toEqual(["hanging"]);
    expect(report.probes).toHaveLength(2);
    expect(report.notSent.length).toBeGreaterThan(15);
    expect(report.exit).toBe(1);
  });

  it("finds one that redirects, that is not there, and that nobody runs", async () => {
    const redirecting = await listen((_request, response) =>
      response.writeHead(308, { location: "/hook/" }).end(),
    );
    const redirected = await examine(flow, redirecting);
    expect(faults(redirected)).toEqual(["redirect"]);
    expect(redirected.findings[0]?.what).toContain("/hook/ (308)");
    const empty = await listen((_request, response) => response.writeHead(404).end());
    expect(faults(await examine(flow, empty))).toEqual(["not-found"]);
    const nobody = await examine(flow, "http://127.0.0.1:1/hook");
    expect(faults(nobody)).toEqual(["unreachable"]);
    expect(nobody.exit).toBe(1);
  });

  it("finds one that is slow", async () => {
    const url = await handWritten({
      ...right[flow],
      answer: (response) => setTimeout(() => response.end(), 60),
    });
    const report = await examine(flow, url, "--slow", "30");
    expect(faults(report)).toEqual(["slow"]);
    expect(report.exit).toBe(1);
  });

  it("finds one that fails on what is not JSON, and one that takes it", async () => {
    expect(faults(await examine(flow, await handWritten({ ...right[flow], notJson: 500 })))).toEqual([
      "server-error",
    ]);
    expect(faults(await examine(flow, await handWritten({ ...right[flow], notJson: 200 })))).toEqual([
      "wrong-status",
    ]);
  });

  it("finds one that has another key", async () => {
    const other =
      flow === "payments" ? { publicKey: createTestKeys().publicKey } : { secret: "whsec_of_somebody_else" };
    const report = await examine(flow, await handWritten({ ...right[flow], verify: rightly(other) }));
    expect(faults(report)).toEqual(["refuses-genuine"]);
  });

  it("finds one that drops the connection", async () => {
    const report = await examine(flow, await listen((request) => request.socket.resetAndDestroy()));
    expect(faults(report)).toEqual(["unreachable"]);
  });

  it("finds one that runs a JSON parser first, with Payhooks behind it", async () => {
    expect(faults(await examine(flow, await expressApp(true)))).toEqual(["body-parser"]);
  });

  it("finds nothing wrong with Payhooks on Express", async () => {
    expect(await examine(flow, await expressApp(false))).toMatchObject({ exit: 0, findings: [] });
  });

  async function expressApp(parsesFirst: boolean): Promise<string> {
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      connect: { secret },
      inbox: memoryInbox(),
      logger: silent,
    });
    receiver.onDeposit(() => {}).onConnectedAccountDeclined(() => {});
    const app = express();
    if (parsesFirst) app.use(express.json());
    app.use("/hook", flow === "payments" ? paymentCallbacks(receiver) : connectWebhooks(receiver));
    onTestFinished(async () => void (await receiver.close()));
    return listen(app);
  }
});

describe("payhooks doctor on a receiver that parses and serialises again", () => {
  it("finds the webhooks whose bytes it no longer has", async () => {
    const url = await handWritten({
      ...right.connect,
      verify: (body, request) => {
        const written = JSON.stringify(JSON.parse(body.toString("utf8")));
        const digest = createHmac("sha256", secret).update(written).digest("hex");
        if (headerOf(request) !== `sha256=${digest}`) throw new Error("bad signature");
      },
    });
    const report = await examine("connect", url);
    expect(faults(report)).toEqual(["raw-body"]);
    expect(report.findings[0]?.what).toContain("verifies what it parsed and serialised again");
    expect(report.findings[0]?.probes).toEqual(
      expect.arrayContaining(["indented", "line end after the body", "a number with a fraction of zeros"]),
    );
    expect(report.exit).toBe(1);
  });

  it("finds the callbacks whose numbers it rounds", async () => {
    const url = await handWritten({
      ...right.payments,
      verify: (body) => {
        const fields = JSON.parse(body.toString("utf8"));
        const isRight =
          verifyRsaSignature(canonicalString(fields), fields.signature, keys.publicKey) !== null;
        if (!isRight) throw new Error("bad signature");
      },
    });
    const report = await examine("payments", url);
    expect(faults(report)).toEqual(["raw-body"]);
    expect(report.findings[0]?.what).toContain("10.0 becomes 10");
  });
});

describe("payhooks doctor on the Express example of this repository", () => {
  it("finds nothing wrong", async () => {
    const root = fileURLToPath(new URL("../../..", import.meta.url));
    const program = ["--conditions=payhooks-source", "--import=tsx", "examples/express/src/quickstart.ts"];
    const env = {
      ...process.env,
      PAY_PUBLIC_KEY: keys.publicKey,
      CONNECT_WEBHOOK_SECRET: secret,
      PORT: "0",
      PAYHOOKS_FILE: join(folder, "example.db"),
    };
    const example = spawn(process.execPath, program, {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void example.kill("SIGKILL"));
    const port = await new Promise<string>((resolve, reject) => {
      let output = "";
      example.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        const [, found] = /listening .*port: (\d+)/.exec(output) ?? [];
        if (found !== undefined) resolve(found);
      });
      example.on("exit", (code) => reject(new Error(`the example ended with ${code}`)));
    });
    const payments = await examine("payments", `http://127.0.0.1:${port}/callbacks/pay`);
    expect(payments).toMatchObject({ exit: 0, findings: [] });
    const connect = await examine("connect", `http://127.0.0.1:${port}/webhooks/connect`);
    expect(connect).toMatchObject({ exit: 0, findings: [] });
  });
});

describe("payhooks doctor", () => {
  it("shows what it found, with the probes that show it and the fix", async () => {
    const url = await handWritten({ ...right.connect, badSignature: 200 });
    const ended = await payhooks(["doctor", url, "--connect"], { env: { CONNECT_WEBHOOK_SECRET: secret } });
    expect(ended.stdout).toMatch(/✗ accepts-forged {2}It answers 200/);
    expect(ended.stdout).toMatch(/seen with: signed with another secret, header of another body/);
    expect(ended.stdout).toContain("Verify the signature before anything else");
    expect(ended.stdout).not.toContain(secret);
    expect(ended.code).toBe(1);
  });

  it("warns of leniency without failing", async () => {
    const url = await listen(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      try {
        if (request.method === "POST") right.connect.verify(body, request);
        response.writeHead(200).end();
      } catch {
        response.writeHead(400).end();
      }
    });
    const ended = await payhooks(["doctor", url, "--secret", secret]);
    expect(ended.stdout.match(/^! lenient/gm)).toHaveLength(2);
    expect(ended.stdout).toContain("signed 30 days ago");
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing is wrong") });
  });

  it.each([
    [["http://127.0.0.1:1/"], /Which flow/],
    [["http://127.0.0.1:1/", "--payments"], /no private key/],
    [["http://127.0.0.1:1/", "--connect"], /no secret/],
    [["http://127.0.0.1:1/", "--private-key", privateKey, "--secret", secret], /one at a time/],
    [["localhost:3000", "--connect", "--secret", secret], /full URL/],
    [[], /An argument is missing/],
  ])("%j exits with 2 and says why", async (args, why) => {
    const ended = await payhooks(["doctor", ...args]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(why);
  });
});
