import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { findNearest } from "../src/command-line/nearest.ts";
import { COMMAND_NAMES, loadCommands } from "../src/commands.ts";
import { payhooks } from "./support/run.ts";

const COMMANDS = await loadCommands();

const manifest: { version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
);

describe("payhooks", () => {
  it("lists its commands with --help, and also without arguments, but as an error", async () => {
    const help = await payhooks(["--help"]);
    expect(COMMANDS.map(({ name }) => name)).toEqual(COMMAND_NAMES);
    for (const { name, summary } of COMMANDS) expect(help.stdout).toContain(`${name.padEnd(7)}  ${summary}`);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(await payhooks([])).toMatchObject({ code: 2, stdout: "", stderr: help.stdout });
  });

  it.each(COMMANDS.map(({ name }) => name))("%s --help shows every option and an example", async (name) => {
    const command = COMMANDS.find((one) => one.name === name);
    const ended = await payhooks([name, "--help"]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const options = [...ended.stdout.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, option]) => option);
    expect(options).toEqual([...Object.keys(command?.options ?? {}), "json", "help"]);
    expect(ended.stdout).toContain(`Usage: payhooks ${name} `);
    for (const example of command?.examples ?? []) expect(ended.stdout).toContain(`  ${example}\n`);
    expect(
      ended.stdout.split("\n").filter((line) => line.length > 100 && !/^ {2}payhooks|Usage|^ {7}/.test(line)),
    ).toEqual([]);
    expect((await payhooks(["help", name])).stdout).toBe(ended.stdout);
    expect((await payhooks([name, "-h"])).stdout).toBe(ended.stdout);
  });

  it("prints its version", async () => {
    expect(await payhooks(["--version"])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
  });

  it.each([
    [["sned"], "Unknown command sned. Did you mean send?"],
    [["--hlep"], "Unknown option --hlep."],
    [["xyzzy"], "Unknown command xyzzy."],
    [["send", "deposit", "--paralel", "3"], "Unknown option --paralel. Did you mean --parallel?"],
    [["send", "deposit", "--to"], "--to needs a value: --to URL"],
    [["send", "deposit", "--to", "--shuffle"], "--to needs a value: --to URL"],
    [["events", "--id", "--body"], "--id needs a value: --id TEXT\nIf it begins with -, write --id=VALUE."],
    [["send", "deposit", "--shuffle=yes"], "--shuffle takes no value."],
    [["verify"], "An argument is missing.\nUsage: payhooks verify "],
    [["sandbox", "extra"], 'Unexpected argument "extra".\nUsage: payhooks sandbox '],
    [["sandbox", "--port", "http"], '--port must be a whole number from 0 to 65535; it is "http".'],
  ])("%j exits with 2 and says why", async (args, message) => {
    const ended = await payhooks(args);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain(`payhooks: ${message}`);
    expect(ended.stderr).not.toMatch(/^\s+at /m);
  });

  it("prints errors as JSON with --json", async () => {
    const ended = await payhooks(["send", "deposit", "--json"]);
    expect(ended).toMatchObject({ code: 2, stderr: "" });
    expect(ended.json()).toEqual([
      { error: { code: "ERR_USAGE", message: expect.stringContaining("--to is missing") } },
    ]);
  });

  it.runIf(existsSync("/dev/full"))("fails when its output cannot be written", () => {
    const full = openSync("/dev/full", "w");
    onTestFinished(() => closeSync(full));
    const stdio = ["ignore", full, "pipe"] as const;
    const ended = spawnSync(process.execPath, [inject("payhooks"), "--version"], { stdio: [...stdio] });
    expect(String(ended.stderr)).toBe("payhooks: The output cannot be written: ENOSPC.\n");
    expect(ended.status).toBe(1);
  });

  it("has no colours if the output is not a terminal", async () => {
    const ended = await payhooks(["verify", "--key", "nothing.pem", "nothing.json"]);
    expect(ended.stdout + ended.stderr).not.toContain("\u001b[");
  });
});

describe("the nearest word", () => {
  const words = ["deposit", "withdrawal", "connected-account", "settlement"];
  it.each([
    ["deposti", "deposit"],
    ["with", "withdrawal"],
    ["setlement", "settlement"],
    ["connected-acount", "connected-account"],
    ["payment", null],
    ["", null],
  ])("to %j is %j", (word, expected) => expect(findNearest(word, words)).toBe(expected));
});
