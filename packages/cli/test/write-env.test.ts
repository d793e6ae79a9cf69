import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { writeEnvironment } from "../src/sandbox/environment.ts";
import { file, folder } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

const written = (before: string, variables: Readonly<Record<string, string>>): string => {
  const path = file(before);
  writeEnvironment(path, variables);
  return readFileSync(path, "utf8");
};

describe("a file of variables that --write-env writes again", () => {
  it.each(['"', "'", "`"])("loses all lines of a value between %s", (quote) => {
    const before = `A=1\nPAY_PUBLIC_KEY=${quote}-----BEGIN\nabc=\n-----END${quote} # old\nB=2\n`;
    expect(written(before, { PAY_PUBLIC_KEY: "new\nkey" })).toBe('A=1\nB=2\nPAY_PUBLIC_KEY="new\\nkey"\n');
  });

  it("keeps all lines of other values, whatever they look like", () => {
    const before = 'TEXT="one\nPAY_BASE_URL=two \\"three\nfour"\n\n# PAY_BASE_URL=five\nIT=don\'t\n';
    expect(written(before, { PAY_BASE_URL: "here" })).toBe(`${before}PAY_BASE_URL="here"\n`);
  });

  it("loses one line where a quote is never closed", () => {
    expect(written("export PAY_BASE_URL='old\nB=2", { PAY_BASE_URL: "here" })).toBe(
      'B=2\nPAY_BASE_URL="here"\n',
    );
  });

  it.each(['"', "'", "`"])("keeps what comes after a %s that is never closed", (quote) => {
    const rest = `DB_PASSWORD=${quote}s3cret${quote}\nE=5\nPAY_URL=${quote}two\nlines${quote} # kept\n`;
    expect(written(`PAY_MERCHANT_ID=${quote}abc\n${rest}`, { PAY_MERCHANT_ID: "new" })).toBe(
      `${rest}PAY_MERCHANT_ID="new"\n`,
    );
    const other = `OTHER=${quote}abc\nPAY_MERCHANT_ID=old\n${rest}`;
    expect(written(other, { PAY_MERCHANT_ID: "new" })).toBe(
      `OTHER=${quote}abc\n${rest}PAY_MERCHANT_ID="new"\n`,
    );
  });

  it("keeps its line ends, and begins as a new one with the variables", () => {
    expect(written('PAY_BASE_URL="a\r\nb"\r\nB=2\r\n\r\n', { PAY_BASE_URL: "here" })).toBe(
      'B=2\r\nPAY_BASE_URL="here"\r\n',
    );
    expect(written("", { A: "1", B: "2" })).toBe('A="1"\nB="2"\n');
  });

  it.each(['a"b', "a\\b", "a$b"])("gets no secret that loaders would change: %s", async (secret) => {
    const path = file("A=1\n");
    const args = ["sandbox", "--port", "0", "--webhook-secret", secret, "--write-env", path];
    const ended = await payhooks(args, { cwd: folder });
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toContain(
      '--webhook-secret has a character that .env files change (" \\ $).\nUse letters and digits.',
    );
    expect(ended.stderr).not.toContain(secret);
    expect(readFileSync(path, "utf8")).toBe("A=1\n");
  });
});
