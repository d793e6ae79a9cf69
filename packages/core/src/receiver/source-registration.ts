import type { HandlerOptions } from "../handlers/handler.ts";
import type { Registry } from "../handlers/registry.ts";
import { type EventName, flowOfEvent } from "../protocol/events.ts";
import { checkNameOf } from "../sources/known-sources.ts";
import type { Sources } from "../sources/source.ts";
import type { Receiver } from "./receiver.ts";

/** The methods of a receiver that register handlers of sources. */
export function sourceRegistrationIn(
  registry: Registry,
  sources: Sources,
  receiver: () => Receiver,
): Pick<Receiver, "on" | "ignore"> {
  return {
    on(source: string, name: string, handler: unknown, options: HandlerOptions = {}) {
      checkNameOf(sources, source, name);
      registry.addOfSource(source, name, handler, options);
      return receiver();
    },
    ignore(event: string, ...names: readonly string[]) {
      if (flowOfEvent(event) !== null) registry.ignore(event as EventName);
      else {
        checkNameOf(sources, event, ...names);
        for (const name of names) registry.ignoreOfSource(event, name);
      }
      return receiver();
    },
  } as unknown as Pick<Receiver, "on" | "ignore">;
}
