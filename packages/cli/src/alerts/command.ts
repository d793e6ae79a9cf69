import {
  type AlertChannel,
  pagerDutyChannel,
  slackChannel,
  testAlerts,
  webhookChannel,
} from "@payhooks/core/alerts";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";

export const alertsCommand: Command = {
  name: "alerts",
  summary: "Send a test through the channels of your alerts",
  usage: ["test [--slack URL] [--pagerduty KEY] [--webhook URL --secret SECRET] [--from TEXT]"],
  options: {
    slack: {
      value: "URL",
      help: "the address of slackChannel(); PAYHOOKS_SLACK_URL is used if it is left out",
    },
    pagerduty: {
      value: "KEY",
      help: "the routingKey of pagerDutyChannel(); PAYHOOKS_PAGERDUTY_KEY is used if it is left out",
    },
    "pagerduty-url": { value: "URL", help: "the url of pagerDutyChannel(), for accounts in Europe" },
    webhook: {
      value: "URL",
      help: "the address of webhookChannel(); PAYHOOKS_WEBHOOK_URL is used if it is left out",
    },
    secret: {
      value: "SECRET",
      help: "the secret of webhookChannel(); PAYHOOKS_WEBHOOK_SECRET is used if it is left out",
    },
    from: { value: "TEXT", help: "the name of your application in the message", default: "payhooks" },
  },
  notes: [
    "It sends one message to each channel, and says whether each message arrived. The exit code is 1 if a message did not.",
    "Other users of this machine can see the options of a command. Put secrets into the environment.",
    "PagerDuty opens an alert of the severity info. You have to resolve it there.",
  ],
  examples: ['payhooks alerts test --from "shop, production"', 'payhooks alerts test --slack "$SLACK_URL"'],
  arguments: { least: 1, most: 1 },
  async run(args, terminal) {
    if (args.positionals[0] !== "test")
      throw new UsageError("The only thing that alerts can do here is: test.");
    const results = await testAlerts(channelsOf(args), args.text("from"));
    for (const [channel, problem] of Object.entries(results)) {
      terminal.json({ channel, sent: problem === null, problem });
      terminal.line(
        problem === null
          ? `${channel}: sent`
          : `${channel}: ${terminal.paint("red", "not sent")}: ${problem}`,
      );
    }
    return Object.values(results).every((problem) => problem === null) ? EXIT.ok : EXIT.failure;
  },
};

function channelsOf(args: ParsedArguments): readonly AlertChannel[] {
  const url = args.text("slack") ?? process.env.PAYHOOKS_SLACK_URL ?? "";
  const routingKey = args.text("pagerduty") ?? process.env.PAYHOOKS_PAGERDUTY_KEY ?? "";
  const webhook = args.text("webhook") ?? process.env.PAYHOOKS_WEBHOOK_URL ?? "";
  const secret = args.text("secret") ?? process.env.PAYHOOKS_WEBHOOK_SECRET ?? "";
  const channels = [
    ...(url === "" ? [] : [slackChannel({ url })]),
    ...(routingKey === "" ? [] : [pagerDutyChannel({ routingKey, url: args.text("pagerduty-url") })]),
    ...(webhook === "" ? [] : [webhookChannel({ url: webhook, secret })]),
  ];
  if (channels.length > 0) return channels;
  throw new UsageError(
    "There is no channel.",
    "Give --slack, --pagerduty or --webhook, or set their variables.",
  );
}
