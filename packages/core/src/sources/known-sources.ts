import type { Flow } from "../flows/flow.ts";
import type { FlowContext } from "../flows/payments.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { FLOWS, isFlowName } from "../protocol/events.ts";
import { definitionOf, type Sources } from "./source.ts";
import { sourceFlow } from "./source-flow.ts";

/**
 * The flows of a receiver's sources.
 *
 * @throws PayhooksError `ERR_SOURCE_NAME`, and `ERR_OPTION_INVALID` for a value that `source()` did not make.
 */
export function sourceFlowsOf(sources: Sources, context: FlowContext): readonly Flow[] {
  return Object.entries(sources).map(([name, value]) => {
    if (!isFlowName(name) || Object.hasOwn(FLOWS, name) || name in {}) {
      throw new PayhooksError("ERR_SOURCE_NAME", `A source has the name ${JSON.stringify(name)}.`, {
        fix: "Choose up to 32 lowercase letters, digits and -, with a letter first, and neither payments nor connect.",
      });
    }
    const definition = definitionOf(value);
    if (definition === null) {
      throw new PayhooksError("ERR_OPTION_INVALID", `sources.${name} is not a source.`, {
        fix: "Give what source() returned, or a ready one such as standardWebhooks({ secret }).",
      });
    }
    return sourceFlow(name, definition, context);
  });
}

/**
 * Throws `ERR_SOURCE_UNKNOWN` for a source that does not exist, and `ERR_OPTION_INVALID` for names that its `events` do not have.
 */
export function checkNameOf(sources: Sources, source: string, ...names: readonly string[]): void {
  if (!Object.hasOwn(sources, source)) throw unknownSourceError(source, Object.keys(sources));
  const knownNames = definitionOf(sources[source])?.names ?? null;
  for (const name of names) {
    if (typeof name !== "string" || name === "") {
      throw new PayhooksError("ERR_OPTION_INVALID", `A name of ${source} is not a text.`, {
        fix: "Give the event's name.",
      });
    }
    if (knownNames === null || name === "*" || knownNames.includes(name)) continue;
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `The source ${source} has no event ${JSON.stringify(name)}.`,
      {
        fix: `It has ${knownNames.join(", ")}.`,
      },
    );
  }
}

/** The error for a source that a receiver does not have. */
export function unknownSourceError(name: string, knownSources: readonly string[]): PayhooksError {
  const fix =
    knownSources.length === 0
      ? "Add it to `sources` of createReceiver."
      : `It has ${knownSources.join(", ")}.`;
  return new PayhooksError("ERR_SOURCE_UNKNOWN", `The receiver has no source ${JSON.stringify(name)}.`, {
    fix,
  });
}
