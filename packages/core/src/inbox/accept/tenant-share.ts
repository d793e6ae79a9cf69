import { ONLY_TENANT } from "../record/keys.ts";

/**
 * True if a tenant that has `ownCount` places of a bounded number may have one more. A tenant may have as many places as are
 * free: half of them if it is alone, a third if another tenant has its whole share. So there are always places for a
 * tenant that has few. Events without a tenant may take all places.
 */
export function mayHaveOneMore(tenant: string, ownCount: number, free: number): boolean {
  return free > 0 && (tenant === ONLY_TENANT || ownCount < free);
}
