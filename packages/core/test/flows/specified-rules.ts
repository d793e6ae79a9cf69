import { type CallbackRules, wireOf } from "../../src/flows/callback.ts";
import { SPECIFIED_NAMES } from "../../src/names/service-names.ts";

/** The rules for callbacks under the specification's names, with nothing declared, pinned or asked for. */
export const SPECIFIED_RULES: CallbackRules = {
  wire: wireOf(SPECIFIED_NAMES.callback),
  pinnedUrls: new Set(),
  isMerchantIdRequired: false,
  pinnedMerchantIds: new Set(),
  isCallbackUrlRequired: true,
};
