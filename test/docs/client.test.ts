import { MEDIUMS } from "@payhooks/client";
import { describe, expect, it } from "vitest";
import { namesIn, readDocument, rowsOf, sectionOf } from "./markdown.ts";
import { VirtualProgram } from "./program.ts";

/** Each section of client.md with the names that its table has, no more and no less. */
const tables: Readonly<Record<string, string>> = {
  Calls: `keyof (import("@payhooks/client").PaymentsClient & import("@payhooks/client").ConnectClient)`,
  Options: `keyof (import("@payhooks/client").ClientOptions & import("@payhooks/client").PaymentKeys
    & import("@payhooks/client").ConnectKey)`,
  reconcile: `keyof import("@payhooks/client").ReconcileOptions`,
  "Error codes": `import("@payhooks/client").ClientErrorCode`,
};

describe("client.md", () => {
  const types = Object.values(tables).map((type, index) => `export type Table${index} = ${type};`);
  const program = new VirtualProgram({ "types.ts": types.join("\n") });

  it("is compared with types that exist", () => {
    expect(program.errorsOf("types.ts")).toEqual([]);
  });

  it.each(Object.keys(tables))("has a row for each name of the program, and no other: %s", (title) => {
    const names = namesIn(sectionOf(readDocument("docs/reference/client.md"), title));
    const index = Object.keys(tables).indexOf(title);
    expect([...names].sort()).toEqual(program.literalsOf("types.ts", `Table${index}`));
  });

  it("lists the mediums that requests may name", () => {
    const row = rowsOf(sectionOf(readDocument("docs/reference/client.md"), "Requests")).find(([name]) =>
      name?.startsWith("`medium`"),
    );
    const named = [...(row?.[1] ?? "").matchAll(/`([A-Z_]+)`/g)].map(([, medium]) => medium);
    expect(named).toEqual([...MEDIUMS]);
  });
});
