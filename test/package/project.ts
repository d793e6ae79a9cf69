/** Makes a starter into a project that follows the documentation, and tries what comes of it. */
import { join } from "node:path";
import {
  callbackFields,
  connectEvent,
  forgedCallback,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { expect } from "vitest";
import { KEYS, SECRET, type Server } from "../conformance/targets.ts";
import { until } from "../faults/harness/scope.ts";
import { write } from "./pack.ts";
import { codeOf, installsOf, type Starter } from "./starters.ts";
import { readManifest, root } from "./workspace.ts";

/** Writes a starter into a folder, with the documentation's code copied into it and its packages to be installed. */
export function writeProject(
  starter: Starter,
  folder: string,
  tarballs: Readonly<Record<string, string>>,
): void {
  const { name, document, manifest, brings, own } = starter;
  for (const [path, content] of Object.entries(own)) write(folder, path, content);
  copy(starter, folder);
  const asked = new Map(
    [...installsOf(document), ...brings].map((one) => {
      const [name = "", version] = one.split(/(?<!^)@/);
      return [name, version];
    }),
  );
  const versions = [...asked].map(([name, version]) => [name, version ?? versionOf(name, tarballs)]);
  const dependencies = Object.fromEntries(versions);
  write(folder, "package.json", { name, private: true, ...manifest, dependencies });
}

/** Copies a document's code into the files that it is for. */
export function copy({ document, files }: Pick<Starter, "document" | "files">, folder: string): void {
  const code = codeOf(document);
  for (const [path, at] of Object.entries(files)) write(folder, path, code[at]);
}

/** What a manifest says to install a package: its tarball, or the version that the workspace has. */
export function versionOf(name: string, tarballs: Readonly<Record<string, string>>): string {
  return tarballs[name] ?? readManifest(join(root, "test/node_modules", name)).version;
}

let count = 0;

/** Sends a genuine delivery and a forged one to each flow: the handlers run for the first only, and once. */
export async function receives(
  { port, output }: Pick<Server, "port" | "output">,
  flows: readonly string[] = ["payments", "connect"],
): Promise<void> {
  const post = async (path: string, { headers, rawBody }: SignedDelivery): Promise<string> => {
    const init = { method: "POST", headers, body: Buffer.from(rawBody) };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return `${answer.status} ${await answer.text()}`;
  };
  const linesWith = (text: string): number => output().split(text).length - 1;
  const received = '200 {"received":true}';
  const n = ++count;
  if (flows.includes("payments")) {
    const path = "/callbacks/pay";
    const forged = forgedCallback(
      callbackFields({ referenceId: `forged-${n}` }),
      { amount: "9.000000" },
      KEYS.privateKey,
    );
    const genuine = signPaymentCallback(callbackFields({ referenceId: `order-${n}` }), KEYS.privateKey);
    expect(await post(path, forged)).toBe('401 {"error":{"code":"ERR_SIGNATURE_INVALID"}}');
    expect([await post(path, genuine), await post(path, genuine)]).toEqual([received, received]);
    await until("the deposit's handler", () => linesWith(`for order-${n} once`) > 0);
    expect([linesWith(`order-${n} `), linesWith(`forged-${n}`)]).toEqual([1, 0]);
  }
  if (flows.includes("connect")) {
    const path = "/webhooks/connect";
    const event = connectEvent("settlement.approved");
    const { id } = event.data as { readonly id: string };
    const forged = signConnectWebhook(event, "whsec_of_somebody_else");
    const genuine = signConnectWebhook(event, SECRET);
    expect(await post(path, forged)).toBe('400 {"error":{"code":"ERR_SIGNATURE_INVALID"}}');
    expect([await post(path, genuine), await post(path, genuine)]).toEqual([received, received]);
    await until("the settlement's handler", () => linesWith(`book ${id}: `) > 0);
    expect(linesWith(`book ${id}: `)).toBe(1);
  }
}
