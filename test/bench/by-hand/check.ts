/** The check by hand: verify, call the handler, answer, keep nothing. */
import { onExpress } from "../child/express.ts";
import { PATHS } from "../child/framework.ts";
import { inlineCheck } from "../child/inline.ts";
import type { OpenShop } from "./shop.ts";

export const openCheck: OpenShop = async ({ publicKey }, handle) => {
  const check = inlineCheck("inline", "rsa", { publicKey, secret: "" }, handle);
  return { server: await onExpress.byHand(PATHS.rsa, check), recorded: async () => {} };
};
