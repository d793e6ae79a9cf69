import { expect, it } from "vitest";
import { HOSTILE } from "../../../test/support/hostile-values.ts";
import { CliError, cliErrorOf } from "../src/command-line/errors.ts";

it.each(Object.entries(HOSTILE))("a thrown value (%s) becomes an error with a message", (_, value) => {
  const error = cliErrorOf(value());
  expect(error).toBeInstanceOf(CliError);
  expect(error.message).toBeTypeOf("string");
  expect(error.exitCode).toBe(1);
});
