import { UNKNOWN_TENANT_REASON } from "../flows/flow.ts";
import type { DeliveryErrorCode } from "../protocol/errors.ts";
import type { FlowName, ServiceFlow } from "../protocol/events.ts";

/** The advice about authentic deliveries that are refused because of their signed time. */
export const SIGNED_TIME_ADVICE: string =
  "Compare the clock of this machine with the signed time. If the event never ran, look the transaction up, and pass it to payments.ingest.";

const STRANGER_ADVICE = "If the sender is not the service, nothing is wrong: the request was refused.";
const CHANGED_BYTES_CAUSE = "Or something in front of the receiver changes bodies.";

const UNKNOWN_MERCHANT_CAUSE =
  "Most often the resolver does not know the merchant yet, or the adapter's tenant option names another one.";

/** The most likely cause of a bad signature, and what to do. It is logged with the first one of a source. */
export function likelyCauseOf(flow: FlowName, code: DeliveryErrorCode, why: string): string {
  const cause = why === UNKNOWN_TENANT_REASON ? UNKNOWN_MERCHANT_CAUSE : (causesOf(flow)[code] ?? "");
  return `${cause} ${STRANGER_ADVICE}`.trimStart();
}

function causesOf(flow: FlowName): Partial<Record<DeliveryErrorCode, string>> {
  return Object.hasOwn(SERVICE_CAUSES, flow) ? SERVICE_CAUSES[flow as ServiceFlow] : SOURCE_CAUSES;
}

const SOURCE_CAUSES: Partial<Record<DeliveryErrorCode, string>> = {
  ERR_SIGNATURE_INVALID: `Most often the secret or key of the source is not the sender's, or was changed: compare the two, including white space. ${CHANGED_BYTES_CAUSE}`,
  ERR_SIGNATURE_MISSING: "Most often this is another program's request, or a proxy drops the header.",
  ERR_SIGNATURE_MALFORMED:
    "Most often the source's format or encoding is not the sender's, or a proxy has sent the header twice.",
};

const SERVICE_CAUSES: Readonly<Record<ServiceFlow, Partial<Record<DeliveryErrorCode, string>>>> = {
  payments: {
    ERR_SIGNATURE_INVALID: `Most often the key is not the one that the service signs with, or was rotated: compare payments.publicKey with the dashboard (Settings, Security, Security Keys). ${CHANGED_BYTES_CAUSE}`,
    ERR_SIGNATURE_MISSING:
      "Every callback has a field signature. Most often this is another program's request, or a connected-account webhook that was sent to the address of the callbacks.",
    ERR_SIGNATURE_MALFORMED: `The service writes base64 with padding, as long as the key. Most often a test or a proxy has rewritten it. ${CHANGED_BYTES_CAUSE}`,
  },
  connect: {
    ERR_SIGNATURE_INVALID: `Most often connect.secret is not the webhook_secret of the webhook settings, or that was changed: compare the two, including white space. ${CHANGED_BYTES_CAUSE}`,
    ERR_SIGNATURE_MISSING:
      "Most often the webhook settings have no webhook_secret, and the service does not sign without one: set it there. Or a proxy drops the header X-Connect-Signature.",
    ERR_SIGNATURE_MALFORMED:
      "The service writes sha256= and 64 lowercase hex digits. Most often a proxy has sent the header twice, or a test wrote it in another way.",
  },
};
