import { shuffled } from "@payhooks/core/testing";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { NAMES_OPTION, readNames } from "../command-line/names.ts";
import { type ParsedArguments, parseChoice, parseHttpUrl } from "../command-line/parsed-arguments.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { MAX_TIMER_MS } from "../command-line/time.ts";
import { inParallel, isAccepted, isRefused, type PostResult, post } from "../delivery/post.ts";
import {
  MADE_UP_MERCHANT_NOTE,
  needPrivateKey,
  needSecret,
  readCredentials,
  refuseMerchantId,
  SIGNING_OPTIONS,
} from "../delivery/signing.ts";
import {
  DELIVERY_KINDS,
  FORGERIES,
  type ForgeryKind,
  type PreparedDelivery,
  prepareDeliveries,
} from "./deliveries.ts";
import { prepareSenderDeliveries, SENDER_NAMES } from "./senders.ts";

export const sendCommand: Command = {
  name: "send",
  summary: "Sign deliveries as the service does, or as an attacker would, and send them to your server",
  usage: [
    "deposit|withdrawal|connected-account|settlement --to URL [OPTIONS]",
    `${SENDER_NAMES.join("|")} --to URL --name NAME [OPTIONS]`,
  ],
  options: {
    to: { value: "URL", help: "where to send it, such as http://127.0.0.1:3000/callbacks/pay" },
    status: {
      value: "STATUS",
      help: "PENDING, SUCCESS or FAILED; approved or declined for webhooks. Several, such as PENDING,SUCCESS, are sent one after the other",
      default: "SUCCESS, approved",
    },
    amount: { value: "AMOUNT", help: "amount; a whole number for settlements", default: "10.50, 125000" },
    reference: { value: "TEXT", help: "your reference (referenceId)", default: "made from the seed" },
    "transaction-id": { value: "TEXT", help: "the service's id (payTxnId)", default: "made from the seed" },
    name: { value: "TEXT", help: "of another sender: the event's name, such as invoice.paid" },
    data: {
      value: "JSON",
      help: "of another sender: the event's data, to which an id is added",
      default: "{}",
    },
    message: { value: "TEXT", help: "the field message" },
    "callback-url": { value: "URL", help: "the signed field callbackUrl", default: "the URL of --to" },
    events: { value: "N", help: "number of different events to send", default: "1" },
    times: { value: "N", help: "copies of each delivery, all with the same bytes", default: "1" },
    parallel: { value: "N", help: "how many deliveries are sent at the same time", default: "1" },
    shuffle: { help: "send in an order that the seed decides" },
    forge: {
      value: "KIND",
      help: "amount: changed after signing; signature: one digit changed; resplit: a SUCCESS under the genuine signature of a FAILED (docs/concepts/security.md)",
    },
    stale: { help: "date it 30 days back, with a valid signature" },
    seed: {
      value: "N",
      help: "decides ids and order; the same seed gives the same events",
      default: "at random",
    },
    timeout: { value: "MS", help: "how long an answer may take", default: "10000" },
    body: { help: "print each body as well" },
    ...NAMES_OPTION,
    ...SIGNING_OPTIONS,
  },
  notes: [
    "It prints every answer. A genuine delivery should get 2xx, and a forged or stale one 4xx. The exit code is 1 if any delivery gets another answer.",
    "A 2xx says that the delivery was received, not that a handler ran. The event may be held, for instance because the receiver expects another merchantId or callbackUrl; payhooks events --state held shows it. A re-split forgery may get a 2xx for the same reason: check that no handler ran for it.",
  ],
  examples: [
    "payhooks send deposit --to http://127.0.0.1:3000/callbacks/pay --state sandbox.json --reference order-1",
    "payhooks send deposit --to http://127.0.0.1:3000/callbacks/pay --state sandbox.json --status PENDING,SUCCESS --times 5 --parallel 8 --shuffle --seed 7",
    "payhooks send settlement --to http://127.0.0.1:3000/webhooks/connect --forge signature",
    "payhooks send stripe --to http://127.0.0.1:3000/webhooks/cards --secret whsec_… --name charge.refunded --times 3",
  ],
  arguments: { least: 1, most: 1 },
  changes: () => true,
  async run(args, terminal) {
    const kindOrSender = parseChoice("What to send", args.positionals[0] ?? "", [
      ...DELIVERY_KINDS,
      ...SENDER_NAMES,
    ]);
    const to = parseHttpUrl("--to", args.requiredText("to", "the address of your endpoint"));
    const seed = args.number("seed") ?? Math.floor(Math.random() * 1_000_000);
    const forge = args.choice("forge", FORGERIES);
    const counts = {
      events: args.number("events", { min: 1, max: 10_000 }) ?? 1,
      times: args.number("times", { min: 1, max: 10_000 }) ?? 1,
      isStale: args.flag("stale"),
      seed,
    };
    refuseForeignOptions(kindOrSender, args);
    const kind = DELIVERY_KINDS.find((deliveryKind) => deliveryKind === kindOrSender);
    if (kind === undefined) {
      refuseMerchantId(args);
      const name = args.requiredText("name", "the event's name");
      const wish = { sender: kindOrSender, name, data: args.text("data") ?? "{}", forge, ...counts };
      const ordered = prepareSenderDeliveries(wish, needSecret(await readCredentials(args)), Date.now());
      const deliveries = args.flag("shuffle") ? shuffled(ordered, seed) : ordered;
      return sendAll(deliveries, to, { args, terminal, seed, forge, isOurMerchant: true });
    }
    const isPayment = kind === "deposit" || kind === "withdrawal";
    if (!isPayment) refuseMerchantId(args);
    const credentials = await readCredentials(args);
    const key = isPayment ? needPrivateKey(credentials) : needSecret(credentials);
    const sendOptions = {
      kind,
      statuses: args.text("status")?.split(",") ?? [],
      amount: args.text("amount"),
      reference: args.text("reference"),
      transactionId: args.text("transaction-id"),
      message: args.text("message"),
      callbackUrl: args.text("callback-url") ?? to.href,
      merchantId: credentials.merchantId,
      forge,
      ...counts,
      names: await readNames(args),
    };
    const ordered = prepareDeliveries(sendOptions, key, Date.now());
    const deliveries = args.flag("shuffle") ? shuffled(ordered, seed) : ordered;
    const isWithoutMerchant = sendOptions.names?.callback.fields.merchantId.sent === "absent";
    const isOurMerchant = !isPayment || isWithoutMerchant || credentials.merchantId !== null;
    return sendAll(deliveries, to, { args, terminal, seed, forge, isOurMerchant });
  },
};

/** Options that not every delivery has, by what has them. */
const OPTIONS_BY_USE = {
  "payment callbacks": ["reference", "transaction-id", "message", "callback-url"],
  "payment callbacks and webhooks of the service": ["status", "amount", "names"],
  "other senders": ["name", "data"],
} as const;

/** Refuses an option that would have no effect on what is sent. */
function refuseForeignOptions(kindOrSender: string, args: ParsedArguments): void {
  const isSender = SENDER_NAMES.includes(kindOrSender);
  const isPayment = kindOrSender === "deposit" || kindOrSender === "withdrawal";
  const has = {
    "payment callbacks": isPayment,
    "payment callbacks and webhooks of the service": !isSender,
    "other senders": isSender,
  } as const;
  for (const use of Object.keys(OPTIONS_BY_USE) as (keyof typeof OPTIONS_BY_USE)[]) {
    const option = OPTIONS_BY_USE[use].find((name) => args.flag(name));
    if (option !== undefined && !has[use])
      throw new UsageError(`--${option} is for ${use}; a ${kindOrSender} has none.`);
  }
}

const MAY_BE_HELD_NOTE =
  "A 2xx means received: the event may have run, or it may be held. payhooks events --state held shows what is held.";
const MUST_BE_HELD_NOTE =
  "This forgery must be held: if a handler has run, your receiver credits re-split callbacks.";

async function sendAll(
  deliveries: readonly PreparedDelivery[],
  to: URL,
  context: {
    readonly args: ParsedArguments;
    readonly terminal: Terminal;
    readonly seed: number;
    readonly forge: ForgeryKind | undefined;
    /** False if the merchantId is made up. */
    readonly isOurMerchant: boolean;
  },
): Promise<number> {
  const { args, terminal, seed, forge, isOurMerchant } = context;
  const timeoutMs = args.number("timeout", { min: 1, max: MAX_TIMER_MS }) ?? 10_000;
  const isRefusalWanted = forge !== undefined || args.flag("stale");
  const isExpected = (answer: PostResult): boolean => {
    if (forge === "resplit") return isAccepted(answer) || isRefused(answer);
    return isRefusalWanted ? isRefused(answer) : isAccepted(answer);
  };
  terminal.line(terminal.paint("dim", `seed ${seed}; ${deliveries.length} to ${to.href}`));
  const answers = await inParallel(
    deliveries,
    args.number("parallel", { min: 1, max: 64 }) ?? 1,
    async ({ label, id, status, delivery }, index) => {
      const answer = await post(to, { headers: delivery.headers, body: delivery.rawBody }, timeoutMs);
      const expected = isExpected(answer);
      const body = args.flag("body") ? { sent: Buffer.from(delivery.rawBody).toString("utf8") } : {};
      const { status: httpStatus, body: text, error, durationMs } = answer;
      terminal.json({
        number: index + 1,
        label,
        id,
        status,
        answer: httpStatus,
        body: text,
        error,
        durationMs,
        expected,
        ...body,
      });
      print(terminal, index + 1, label, answer, expected);
      if ("sent" in body) terminal.line(`    ${escapeForTerminal(body.sent ?? "", 10_000)}`);
      return { expected, accepted: isAccepted(answer) };
    },
  );
  const unexpectedCount = answers.filter(({ expected }) => !expected).length;
  if (unexpectedCount > 0) {
    const wantedAnswer = forge === "resplit" ? "2xx or 4xx" : isRefusalWanted ? "4xx" : "2xx";
    terminal.line(`\n${unexpectedCount} of ${answers.length} answers are not ${wantedAnswer}.`);
  }
  if (answers.some(({ accepted }) => accepted)) {
    terminal.line(`\n${MAY_BE_HELD_NOTE}`);
    if (forge === "resplit") terminal.line(MUST_BE_HELD_NOTE);
    if (!isOurMerchant) terminal.line(MADE_UP_MERCHANT_NOTE);
  }
  return unexpectedCount === 0 ? EXIT.ok : EXIT.failure;
}

function print(
  terminal: Terminal,
  number: number,
  label: string,
  answer: PostResult,
  expected: boolean,
): void {
  const { status, body, error, durationMs } = answer;
  const outcome = status === null ? `no answer: ${error}` : `${status} ${escapeForTerminal(body)}`;
  const painted = terminal.paint(expected ? "green" : "red", outcome.trim());
  terminal.line(
    `#${number} ${escapeForTerminal(label)} → ${painted} ${terminal.paint("dim", `${durationMs} ms`)}`,
  );
}
