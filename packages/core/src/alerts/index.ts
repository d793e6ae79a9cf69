/**
 * Alerts that reach a person: Slack, PagerDuty, or any other way.
 *
 * @module
 */

export { type AlertChannel, AlertNotSent } from "./channel.ts";
export type { AlertMessage, IncidentKind } from "./message.ts";
export { type PagerDutyChannelOptions, pagerDutyChannel } from "./pager-duty.ts";
export { type AlertSender, type SendAlertsOptions, sendAlerts } from "./send-alerts.ts";
export { slackChannel } from "./slack.ts";
export { testAlerts } from "./test-alerts.ts";
export { type WebhookChannelOptions, webhookChannel } from "./webhook.ts";
