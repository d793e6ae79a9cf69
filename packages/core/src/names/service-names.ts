import { PayhooksError } from "../protocol/errors.ts";
import { checkFieldOrder } from "./field-order.ts";
import { wireFields } from "./fields.ts";
import { NamesCheck } from "./names-check.ts";
import type { ServiceNames, ServiceNamesOptions } from "./options.ts";

/**
 * The names that a deployment of the service uses where the specification has a neutral word (specification, Naming
 * note): of a callback's fields, of the signature's header, in paths and in answers. Handlers, records and the console
 * keep the neutral names.
 *
 * If you call a field `"always"` and a callback lacks it, this callback can be forged. So use it only if you know that
 * the service always sends the field. `"sometimes"` is safe: at worst, Payhooks leaves a value out, or holds a
 * callback.
 *
 * @throws PayhooksError `ERR_NAMES_INVALID` with all faults.
 * @example
 * const names = serviceNames({ callback: { fields: { payTxnId: "acmeTxnId" }, statuses: { FAILED: ["CANCELLED"] } } });
 */
export function serviceNames(options: ServiceNamesOptions | ServiceNames = {}): ServiceNames {
  const check = new NamesCheck();
  // Names that are made already have their warnings with them. They are checked again, because anybody can write such an object.
  const members = check.membersOf(options, "The names", ["callback", "connect", "api", "warnings"]);
  const callback = check.membersOf(members.callback, "callback", ["fields", "extra", "statuses"]);
  const fields = check.fields(callback.fields);
  const extra = check.extra(callback.extra, fields);
  const statuses = check.statuses(callback.statuses);
  const connect = check.connect(members.connect);
  const api = check.api(members.api);
  check.checkUnique({ fields, extra });
  const order = checkFieldOrder(wireFields({ fields, extra }), { urlKnown: false });
  const faults = [...check.faults, ...order.faults];
  if (faults.length > 0) {
    const list = faults.map(({ what, fix }) => `${what}. ${fix}.`).join("\n");
    throw new PayhooksError("ERR_NAMES_INVALID", `The service's names cannot be used:\n${list}`);
  }
  return Object.freeze({
    callback: Object.freeze({ fields, extra, statuses }),
    connect,
    api,
    warnings: Object.freeze(order.warnings.map((warning) => Object.freeze(warning))),
  });
}

/** The names of the specification. */
export const SPECIFIED_NAMES: ServiceNames = serviceNames();
