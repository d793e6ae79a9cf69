import { createHash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";

/** The one merchant of a sandbox, and the keys for its calls. */
export interface Merchant {
  /** A UUID. It is the `merchant_id` of transactions and the `merchantId` of callbacks. */
  readonly merchantId: string;
  /** `mm_` and a UUID. It owns the connected accounts. */
  readonly masterMerchantId: string;
  /** The `userId` of callbacks. */
  readonly userId: string;
  /** The `X-API-Key` for the payment endpoints: `<PUBLIC_KEY>:<SECRET_KEY>`. */
  readonly apiKey: string;
  /** The `X-API-Key` for the connected-account endpoints. */
  readonly connectApiKey: string;
}

type PartialMerchant = { readonly [Key in keyof Merchant]?: string | undefined };

/** Members that are not given are as saved, and members that are not saved are made at random. */
export function createMerchant(
  givenMembers: PartialMerchant = {},
  savedMembers: PartialMerchant = {},
): Merchant {
  const random = (prefix: string) => `${prefix}_${randomBytes(18).toString("hex")}`;
  return {
    merchantId: givenMembers.merchantId ?? savedMembers.merchantId ?? randomUUID(),
    masterMerchantId: givenMembers.masterMerchantId ?? savedMembers.masterMerchantId ?? `mm_${randomUUID()}`,
    userId: givenMembers.userId ?? savedMembers.userId ?? randomUUID(),
    apiKey: givenMembers.apiKey ?? savedMembers.apiKey ?? `${random("pk_sandbox")}:${random("sk_sandbox")}`,
    connectApiKey: givenMembers.connectApiKey ?? savedMembers.connectApiKey ?? random("ck_sandbox"),
  };
}

/** Compares a header with a key, always in the same time. So the time does not reveal how much of the key was right. */
export function isKey(header: string | undefined, key: string): boolean {
  if (header === undefined) return false;
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(header), hash(key));
}
