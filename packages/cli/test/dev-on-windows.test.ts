import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { programOnWindows } from "../src/sandbox/app.ts";
import { file, folder } from "./support/files.ts";

mkdirSync(join(folder, "bin"));
file("", "bin/npm.cmd");
file("#!/bin/sh", "bin/npm");
file("", "bin/node.exe");
const environment = { PATH: `;${join(folder, "nothing")};${join(folder, "bin")}` };

/** What cmd.exe makes of a line: it fills in variables, and a ^ outside of quotes takes the next character as it is. */
function readByCmd(line: string): string {
  const filled = line.replace(/%([^%]+)%/g, (text, name) => (name === "PATH" ? "filled in" : text));
  let isQuoted = false;
  return filled.replace(/\^(.?)|[\s\S]/g, (text, escaped: string | undefined) => {
    if (escaped !== undefined) return isQuoted ? text : escaped;
    if (text === '"') isQuoted = !isQuoted;
    if (!isQuoted && /[&|<>()]/.test(text)) throw new Error(`${text} is a command of its own in: ${line}`);
    return text;
  });
}

/** The arguments that a program on Windows reads from its command line. */
function argumentsIn(line: string): string[] {
  const words = line.matchAll(/(?:"(?:\\[\s\S]|[^"\\])*"|[^\s"])+/g);
  return [...words].map(([word]) => {
    const inner = /^"([\s\S]*)"$/.exec(word)?.[1] ?? word;
    return inner.replace(/(\\+)("|$)/g, (_, slashes: string, end: string) => {
      const isPlain = end === "" && !word.startsWith('"');
      return isPlain ? slashes : "\\".repeat(Math.floor(slashes.length / 2)) + end;
    });
  });
}

describe("payhooks dev on Windows", () => {
  it.each([
    ["node", ["-e", 'console.log("a b")']],
    [join(folder, "bin", "node.exe"), ["with space.js"]],
    ["no-such-command", ["a b"]],
    ["cmd.exe", ["/c", 'echo "a  b" & "c d"']],
  ])("starts %s itself, with its arguments as they are", (command, args) => {
    expect(programOnWindows(command, args, environment)).toEqual({ file: command, args, isVerbatim: false });
  });

  it("has cmd.exe run a .cmd file, which passes the arguments on as they are", () => {
    const npm = join(folder, "bin", "npm.cmd");
    const args = [
      "run",
      "a b",
      "x&y",
      "100%",
      "%PATH%",
      'say "hi"',
      'say "a&b|c" > d',
      "^",
      "C:\\my dir\\",
      "",
    ];
    for (const command of ["npm", "npm.cmd", npm]) {
      const { file: program, args: given, isVerbatim } = programOnWindows(command, args, environment);
      expect({ program, isVerbatim }).toEqual({ program: "cmd.exe", isVerbatim: true });
      expect(given.slice(0, 3)).toEqual(["/d", "/s", "/c"]);
      // /s takes the first and the last quote away.
      const line = readByCmd(/^"(.*)"$/.exec(given[3] ?? "")?.[1] ?? "");
      expect(line.startsWith(`${npm} `)).toBe(true);
      // A .cmd file of npm ends with the line: node cli.js %*
      const passedOn = readByCmd(line.slice(npm.length + 1));
      expect(argumentsIn(passedOn)).toEqual(args);
    }
  });

  it("leaves plain words alone, which a .bat file may compare with %1", () => {
    const given = programOnWindows("npm", ["run", "--port=3000", "dev:web", "src\\app.js"], environment);
    const npm = join(folder, "bin", "npm.cmd").replaceAll(" ", "^ ");
    expect(given.args[3]).toBe(`"${npm} run ^^^"--port=3000^^^" dev:web src\\app.js"`);
  });
});
