import { PayhooksError } from "../protocol/errors.ts";
import type { ServiceNames, ServiceNamesOptions } from "./options.ts";
import { serviceNames } from "./service-names.ts";

/**
 * Reads names from the text of a file: the JSON of {@link ServiceNamesOptions}.
 *
 * @throws PayhooksError `ERR_NAMES_INVALID` for another text, or with all faults.
 * @example const names = parseServiceNames(readFileSync("names.json", "utf8"));
 */
export function parseServiceNames(json: string): ServiceNames {
  let options: unknown;
  try {
    options = JSON.parse(json);
  } catch {
    throw new PayhooksError("ERR_NAMES_INVALID", "The service's names are not JSON.", {
      fix: 'Write the options of serviceNames as JSON, such as { "callback": { "fields": { "payTxnId": "acmeTxnId" } } }.',
    });
  }
  return serviceNames(options as ServiceNamesOptions);
}
