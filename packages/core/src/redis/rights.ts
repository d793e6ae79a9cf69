import { PayhooksError } from "../protocol/errors.ts";
import type { Group } from "./groups.ts";
import { CHECK_RIGHTS_SCRIPT } from "./scripts.ts";

/** The commands that an ACL has to allow: those of the scripts, and those that run the scripts. */
const RIGHTS_FIX =
  "Allow the keys of the prefix and these commands: ACL SETUSER your_user ~payhooks:* +@read +@write +@scripting +time +info +wait +blpop. Hints and replicas need the last two.";

/** True if Redis has refused a command, a key or a script because of the user's ACL. */
export function isForbidden(error: unknown): boolean {
  return error instanceof Error && /(?:^|[^A-Z])NOPERM |user executing the script can't/.test(error.message);
}

/** The error for a user that may not do everything that events need. `lacking` names the refused commands. */
export function lackingRightsError(lacking: string, cause?: unknown): PayhooksError {
  return new PayhooksError(
    "ERR_REDIS_UNSUITABLE",
    `The user of redisInbox may not do everything that events need. Redis refuses: ${lacking}.`,
    { fix: RIGHTS_FIX, cause },
  );
}

/**
 * Tries the commands of the scripts on keys that hold nothing, on each of these groups.
 *
 * @throws PayhooksError `ERR_REDIS_UNSUITABLE` if the user's ACL refuses one of them.
 */
export async function checkRights(groups: readonly Group[]): Promise<void> {
  const answers = await Promise.all(
    groups.map((group) => {
      const [shard] = group.shards;
      return shard === undefined
        ? []
        : group.run(CHECK_RIGHTS_SCRIPT, [shard.keyOf("check"), shard.keyOf("checks")]);
    }),
  );
  const lacking = new Set(answers.flat().map(String));
  if (lacking.size > 0) throw lackingRightsError([...lacking].join(", "));
}
