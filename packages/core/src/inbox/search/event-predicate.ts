import { isAmount, parseAmount } from "../../protocol/amount.ts";
import { invalidOptionError } from "../../protocol/errors.ts";
import { isHandlerName } from "../../protocol/handler-name.ts";
import type { AmountRange, EventQuery } from "../contract/event-query.ts";
import type { StoredEvent } from "../record/stored-event.ts";

/** True for an event that the query asks for. */
export type EventPredicate = (event: StoredEvent) => boolean;

/**
 * The part of a query for which no store has an index, so each event must be read. Null if the query has no such part.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`
 */
export function predicateOf({
  amount,
  handler,
}: Pick<EventQuery, "amount" | "handler">): EventPredicate | null {
  if (amount === undefined && handler === undefined) return null;
  const isInRange = amount === undefined ? () => true : rangeOf(amount);
  if (handler !== undefined && !isHandlerName(handler)) {
    throw invalidOptionError(
      `The handler of events.list is ${quoteValue(handler)}, which is not the name of a handler.`,
      "Give the name of a handler, or leave it out.",
    );
  }
  return (event) => isInRange(event) && (handler === undefined || wasTried(event, handler));
}

function rangeOf(range: AmountRange): EventPredicate {
  const { min, max } = boundsIn(range);
  return ({ amount }) => {
    // An unlisted webhook may have an amount in another form, such as a negative one.
    if (amount === null || !isAmount(amount)) return false;
    const millionths = parseAmount(amount);
    return (min === null || millionths >= min) && (max === null || millionths <= max);
  };
}

function boundsIn(range: AmountRange): Readonly<Record<keyof AmountRange, bigint | null>> {
  const names = Object.keys(Object(range)).filter((name) => name !== "min" && name !== "max");
  if (typeof range !== "object" || range === null || names.length > 0) {
    throw invalidOptionError(
      "The amount of events.list must be a range.",
      'Write it as { min: "100", max: "999.99" }.',
    );
  }
  const [min, max] = [boundOf("min", range.min), boundOf("max", range.max)];
  if (min === null && max === null) {
    throw invalidOptionError(
      "The amount of events.list has no bound.",
      "Give min, max or both, or leave amount out.",
    );
  }
  if (min !== null && max !== null && min > max) {
    throw invalidOptionError("The min of an amount is above its max.", "Exchange the two.");
  }
  return { min, max };
}

function boundOf(name: keyof AmountRange, text: string | undefined): bigint | null {
  if (text === undefined) return null;
  try {
    return parseAmount(text);
  } catch {
    throw invalidOptionError(
      `The ${name} of an amount is ${quoteValue(text)}.`,
      'Give digits with at most six decimals, as a text such as "10.50".',
    );
  }
}

function wasTried({ handlers, history }: StoredEvent, name: string): boolean {
  return Object.hasOwn(handlers, name) || history.some(({ handler }) => handler === name);
}

function quoteValue(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : `a ${typeof value}`;
}
