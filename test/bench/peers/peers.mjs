/** Copied beside the installed packages, so that they are found from there. */
export { createNodeMiddleware, Webhooks as OctokitWebhooks } from "@octokit/webhooks";
export * as bolt from "@slack/bolt";
export { Webhook as StandardWebhook } from "standardwebhooks";
export { Stripe } from "stripe";
export { Webhook as SvixWebhook } from "svix";
