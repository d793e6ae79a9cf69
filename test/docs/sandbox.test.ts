import { describe, expect, it } from "vitest";
import { namesIn, readDocument, rowsOf, sectionOf } from "./markdown.ts";
import { VirtualProgram } from "./program.ts";

const page = readDocument("docs/guides/sandbox.md");
const program = new VirtualProgram({
  "types.ts": `
    import type { SandboxOptions } from "@payhooks/sandbox";
    type Given<Name extends keyof SandboxOptions> = keyof NonNullable<SandboxOptions[Name]>;
    export type Options = keyof SandboxOptions;
    export type Merchant = Given<"merchant">;
    export type Retry = Given<"retry">;
    export type Limits = Given<"limits">;
  `,
});

/** The names in backticks of an option's last column. */
const namesOf = (option: string): readonly string[] => {
  const row = rowsOf(sectionOf(page, "Options")).find(([name]) => name === `\`${option}\``);
  return [...(row?.at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name).sort();
};

describe("docs/guides/sandbox.md", () => {
  it("has a row for each option of createSandbox, and no other", () => {
    expect([...namesIn(sectionOf(page, "Options"))].sort()).toEqual(
      program.literalsOf("types.ts", "Options"),
    );
  });

  it.each([
    ["merchant", "Merchant"],
    ["retry", "Retry"],
    ["limits", "Limits"],
  ])("names what the option %s may hold", (option, type) => {
    expect(namesOf(option)).toEqual(program.literalsOf("types.ts", type));
  });
});
