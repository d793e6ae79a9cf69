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

describe("payhooks dev on Windows", () => {
  it.each([
    ["node", ["-e", 'console.log("a b")']],
    [join(folder, "bin", "node.exe"), ["with space.js"]],
    ["no-such-command", ["a b"]],
  ])("starts %s itself, with its arguments as they are", (command, args) => {
    expect(programOnWindows(command, args, environment)).toEqual({ file: command, args });
  });

  it("has cmd.exe run a .cmd file, with arguments that stay what they are", () => {
    const npm = join(folder, "bin", "npm.cmd");
    const args = ["run", "a b", "x&y", "100%", 'say "hi"', "C:\\my dir\\", ""];
    const line = [
      npm.replaceAll(" ", "^ "),
      '^"run^"',
      '^"a^ b^"',
      '^"x^&y^"',
      '^"100^%^"',
      '^"say^ \\^"hi\\^"^"',
      '^"C:\\my^ dir\\\\^"',
      '^"^"',
    ].join(" ");
    for (const command of ["npm", "npm.cmd", npm]) {
      expect(programOnWindows(command, args, environment)).toEqual({
        file: "cmd.exe",
        args: ["/d", "/s", "/c", `"${line}"`],
      });
    }
  });
});
