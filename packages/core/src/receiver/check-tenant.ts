import type { Flow } from "../flows/flow.ts";
import { PayhooksError } from "../protocol/errors.ts";

/**
 * Checks the tenant of an event that comes without a signature: from a look-up, or from another receiver. If the event
 * were recorded under another tenant than its delivery, it would run a second time.
 *
 * @param method the method of the receiver that got the event.
 * @throws PayhooksError `ERR_OPTION_MISSING` or `ERR_OPTION_INVALID`.
 */
export function checkTenant({ hasTenants, source }: Flow, tenant: string | undefined, method: string): void {
  if (hasTenants && !tenant) {
    throw new PayhooksError(
      "ERR_OPTION_MISSING",
      `${method} was given no tenant, but a resolver chooses the keys.`,
      {
        fix: "Pass { tenant } as the resolver names it for this merchant, so that the event meets its delivery.",
      },
    );
  }
  // The tenant of a source may come from its `read`.
  if (!hasTenants && tenant && source === undefined) {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `${method} was given a tenant, but the receiver has fixed keys.`,
      {
        fix: "Leave { tenant } out: with fixed keys, no event belongs to a tenant.",
      },
    );
  }
}
