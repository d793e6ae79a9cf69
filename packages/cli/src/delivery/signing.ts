import { createPrivateKey } from "node:crypto";
import { UsageError } from "../command-line/errors.ts";
import type { OptionSpec } from "../command-line/form.ts";
import { readText } from "../command-line/input.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";

/** Options of commands that sign. */
export const SIGNING_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  "private-key": { value: "FILE", help: "RSA private key in PEM that signs payment callbacks" },
  secret: {
    value: "SECRET",
    help: "secret that signs webhooks; if it is left out, CONNECT_WEBHOOK_SECRET is used",
  },
  "merchant-id": {
    value: "TEXT",
    help: "the signed field merchantId, the same as in payments.expect.merchantId; if it is left out, that of --state or PAY_MERCHANT_ID is used",
  },
  state: {
    value: "FILE",
    help: "state file of a sandbox (payhooks sandbox --state FILE); it holds all three",
  },
};

/** The keys that deliveries are signed with, and the merchant that they are for. A member that was not given is null. */
export interface Credentials {
  readonly privateKey: string | null;
  readonly secret: string | null;
  readonly merchantId: string | null;
}

/** Reads the credentials that were given. Fails for a file that holds none. */
export async function readCredentials(args: ParsedArguments): Promise<Credentials> {
  const state = args.text("state");
  const savedState = state === undefined ? null : readState(state, await readText(state));
  const file = args.text("private-key");
  const privateKey = file === undefined ? (savedState?.privateKey ?? null) : await readText(file);
  if (privateKey !== null) checkPrivateKey(privateKey, file ?? state ?? "");
  const { CONNECT_WEBHOOK_SECRET, PAY_MERCHANT_ID } = process.env;
  return {
    privateKey,
    secret: (args.text("secret") ?? savedState?.secret ?? CONNECT_WEBHOOK_SECRET) || null,
    merchantId: (args.text("merchant-id") ?? savedState?.merchantId ?? PAY_MERCHANT_ID) || null,
  };
}

export function needPrivateKey({ privateKey }: Credentials): string {
  if (privateKey !== null) return privateKey;
  throw new UsageError(
    "There is no private key to sign payment callbacks with.",
    "Give --private-key FILE (make one: openssl genrsa -out private.pem 2048), or --state FILE of a sandbox.",
  );
}

export function needSecret({ secret }: Credentials): string {
  if (secret !== null) return secret;
  throw new UsageError(
    "There is no secret to sign webhooks with.",
    "Give --secret, set CONNECT_WEBHOOK_SECRET, or give --state FILE of a sandbox.",
  );
}

function checkPrivateKey(pem: string, file: string): void {
  try {
    const key = createPrivateKey(pem);
    const { modulusLength: bits = 0, publicExponent: exponent = 0n } = key.asymmetricKeyDetails ?? {};
    const isInBounds = bits >= 2048 && bits <= 4096 && exponent >= 65537n && exponent <= 2n ** 32n;
    if (key.asymmetricKeyType === "rsa" && isInBounds) return;
  } catch {
    const hint = pem.includes("PUBLIC KEY") ? " It is a public key: only the private one signs." : "";
    throw new UsageError(`${file} holds no private key in PEM that can be read.${hint}`);
  }
  throw new UsageError(
    `${file} must hold an RSA key of 2048 to 4096 bits with the exponent 65537, as receivers ask for.`,
  );
}

/** Printed if the merchantId was made up, because a 2xx may then mean that the event is held. */
export const MADE_UP_MERCHANT_NOTE: string =
  "The merchantId was made up. A receiver that expects another one holds such events: give --merchant-id, --state or PAY_MERCHANT_ID.";

/** Refuses --merchant-id for webhooks, because they carry no such field. */
export function refuseMerchantId(args: ParsedArguments): void {
  if (args.flag("merchant-id")) {
    throw new UsageError("--merchant-id is for payment callbacks; webhooks have no merchantId.");
  }
}

function readState(file: string, text: string): Credentials {
  try {
    const { privateKey, connect, merchant }: SavedState = JSON.parse(text);
    if (typeof privateKey === "string") {
      return {
        privateKey,
        secret: connect?.settings?.webhook_secret ?? null,
        merchantId: merchant?.merchantId ?? null,
      };
    }
  } catch {
    // The error below says it.
  }
  throw new UsageError(`${file} is not the state file of a sandbox.`);
}

/** The members of a sandbox's state file that are read here. */
interface SavedState {
  readonly privateKey?: unknown;
  readonly connect?: { readonly settings?: { readonly webhook_secret?: string | null } };
  readonly merchant?: { readonly merchantId?: string };
}
