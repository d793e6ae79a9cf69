import { ONLY_TENANT } from "../record/keys.ts";

/**
 * True if a tenant that has `own` places of a bounded number may have one more. It may have as many as it leaves free: half of the
 * places if it is alone, a third if another one takes all that it may. So something is always left for a tenant that has little.
 * Events without a tenant may take all places.
 */
export function mayHaveOneMore(tenant: string, own: number, free: number): boolean {
  return free > 0 && (tenant === ONLY_TENANT || own < free);
}
