import { checkNames } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";

/** The parts of an event that are kept after its end. */
export interface KeepOptions {
  /**
   * The signed text is kept for at least so long after the event's end, in milliseconds, so that the event can be run again. It
   * is deleted with the event's record, which is kept for `windowMs` and a day at least.
   */
  readonly signedTextMs: number;
}

/**
 * How long to keep the signed text, by the option `keep`; undefined if it is dropped at the event's end.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`
 */
export function keepMsOf(option: string, keep: KeepOptions | undefined): number | undefined {
  if (keep === undefined) return undefined;
  checkNames(option, keep, { signedTextMs: true });
  checkTime(`${option}.signedTextMs`, keep.signedTextMs);
  return keep.signedTextMs;
}
