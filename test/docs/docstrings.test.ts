import { describe, expect, it } from "vitest";
import { EVENTS } from "../../packages/core/src/protocol/events.ts";
import { declaredIn, docsOfMember, entries } from "./public-names.ts";

/** The sandbox is left to its own documentation. */
const read = entries.filter(({ specifier }) => specifier !== "@payhooks/sandbox");

describe.each(read)("the docstrings of $specifier", (entry) => {
  const { names, declared } = declaredIn(entry);

  it("are there for every function, method and type", () => {
    const documented = new Set(declared.filter(({ text }) => text !== "").map(({ name }) => name));
    const silent = declared
      .filter(({ kind, name }) => kind !== "other" && !documented.has(name))
      .map(({ name, where }) => `${where}: ${name}`);
    expect(silent).toEqual([]);
    expect(documented.size).toBeGreaterThan(0);
  });

  it("link to names that the same entry point exports", () => {
    const dead = declared.flatMap(({ name, text }) =>
      [...text.matchAll(/\{@link ([\w$]+)/g)]
        .filter(([, target = ""]) => !names.has(target))
        .map(([link]) => `${name}: ${link}}`),
    );
    expect(dead).toEqual([]);
  });
});

describe("the docstrings of a receiver's registration", () => {
  const [core] = entries.filter(({ specifier }) => specifier === "@payhooks/core");
  const docsOf = (method: string): string =>
    core === undefined ? "" : docsOfMember(core, "Receiver", method);

  it.each([...Object.keys(EVENTS), "onHeld"])("name what %s throws", (method) => {
    for (const code of [
      "ERR_OPTION_INVALID",
      "ERR_HANDLER_NAME",
      "ERR_HANDLER_DUPLICATE",
      "ERR_REGISTRATION_CLOSED",
    ])
      expect(docsOf(method)).toContain(`\`${code}\``);
  });

  it("name what ignore throws, and where the text of run comes from", () => {
    expect(docsOf("ignore")).toContain("`ERR_OPTION_INVALID`");
    expect(docsOf("ignore")).toContain("`ERR_REGISTRATION_CLOSED`");
    expect(docsOf("run")).toContain("`notifyWorker` named");
  });

  it("say that a crash is an attempt too, and when an event is held", () => {
    const text = core === undefined ? "" : docsOfMember(core, "HandlerOptions", "maxAttempts");
    expect(text).toContain("crashes included");
    expect(text).toContain("once no other handler has attempts left");
  });
});
