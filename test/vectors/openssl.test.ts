import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { connect, folder, payments, refusedKeys, signatureOf } from "./vectors.ts";

const command = "openssl";

/** Asks the openssl command the same questions, so that the committed files cannot come to say something else. */
describe("the openssl command agrees with the vectors", () => {
  const work = mkdtempSync(join(tmpdir(), "payhooks-vectors-"));
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  const openssl = (
    args: readonly string[],
    input: string | Uint8Array,
  ): { status: number | null; stdout: Buffer } => {
    const { error, status, stdout } = spawnSync(command, args, { input });
    if (error !== undefined) throw error;
    return { status, stdout };
  };

  /** True when the text is what openssl writes for the bytes that it reads from it, and these verify. */
  const accepts = (keyFile: string, canonical: string, signature: unknown): boolean => {
    if (typeof signature !== "string") return false;
    const bytes = openssl(["base64", "-d", "-A"], signature).stdout;
    if (openssl(["base64", "-A"], bytes).stdout.toString() !== signature) return false;
    const [hashFile, signatureFile] = [join(work, "hash"), join(work, "signature")];
    writeFileSync(hashFile, openssl(["dgst", "-sha256", "-binary"], canonical).stdout);
    writeFileSync(signatureFile, bytes);
    // Not `dgst -verify`: it reads no more of the signature than the key is long.
    const verify = ["pkeyutl", "-verify", "-pubin", "-inkey", keyFile, "-pkeyopt", "digest:sha256"];
    const { status, stdout } = openssl([...verify, "-in", hashFile, "-sigfile", signatureFile], "");
    return status === 0 && stdout.toString().trim() === "Signature Verified Successfully";
  };

  it.each(payments)("payments: $name is valid: $valid", ({ body, canonical, publicKey: key, valid }) => {
    const keyFile = join(folder, "keys", `${key}.public.pem`);
    expect(accepts(keyFile, canonical, signatureOf(body))).toBe(valid);
  });

  it.each(connect)("connect: $name is valid: $valid", ({ bodyBase64, header, secret, valid }) => {
    const key = `hexkey:${Buffer.from(secret, "utf8").toString("hex")}`;
    const args = ["dgst", "-sha256", "-mac", "HMAC", "-macopt", key, "-binary"];
    const { status, stdout } = openssl(args, Buffer.from(bodyBase64, "base64"));
    expect(status).toBe(0);
    expect(stdout.length).toBe(32);
    expect(header === `sha256=${stdout.toString("hex")}`).toBe(valid);
  });

  it.each(refusedKeys)("refused keys: $key verifies with openssl: $opensslAccepts", (vector) => {
    const keyFile = join(folder, "keys", vector.key);
    expect(accepts(keyFile, vector.canonical, signatureOf(vector.body))).toBe(vector.opensslAccepts);
  });
});
