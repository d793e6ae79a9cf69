import type { RecordStore } from "@payhooks/core/inbox";
import { around } from "./around.ts";

/** The same store, but the process is stopped (SIGSTOP) once it has sent its first take, before it reads the answer. */
export function stoppedInTake(store: RecordStore): RecordStore {
  let stops = true;
  return around(store, {
    async takeDue(limit, hideMs) {
      if (!stops || limit.usual === 0) return store.takeDue(limit, hideMs);
      stops = false;
      // The first look also asks for what it needs to know. The one behind it sends the take in this turn of the event loop.
      await store.takeDue({ usual: 0, patient: 0 }, 0);
      const answer = store.takeDue(limit, hideMs);
      setImmediate(() => process.kill(process.pid, "SIGSTOP"));
      return answer;
    },
  });
}
