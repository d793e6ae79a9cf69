import type { ScriptClient } from "./script-client.ts";
import { SWAP } from "./scripts.ts";

/** What became of a swap. */
export interface Swapped {
  /** The server's, in milliseconds since the epoch. */
  readonly time: string;
  /** Null when it was made; else what is there now, "" for nothing. */
  readonly current: string | null;
}

interface Waiting {
  readonly key: string;
  readonly args: readonly string[];
  resolve(swapped: Swapped): void;
  reject(error: unknown): void;
}

/** Redis does nothing else while a script runs: one of these takes well below a millisecond. */
const MAX_TOGETHER = 50;
/** Characters: writing a longer text costs more than a second command. */
const MAX_LENGTH = 30_000;

/**
 * Swaps records, those of one turn together where the server lets a script touch several keys: a command costs more
 * than what it does.
 */
export function swapper(
  client: () => Promise<ScriptClient>,
): (key: string, args: readonly string[]) => Promise<Swapped> {
  let waiting: Waiting[] = [];
  let alone = false;

  async function send(open: ScriptClient, together: readonly Waiting[]): Promise<void> {
    const keys = together.map(({ key }) => key);
    try {
      const answer = await open.eval(
        SWAP,
        keys,
        together.flatMap(({ args }) => args),
      );
      const [time, ...values] = answer as [string, ...(string | null)[]];
      together.forEach(({ resolve }, at) => {
        resolve({ time, current: values[at] ?? null });
      });
    } catch (error) {
      if (together.length > 1 && isCrossSlot(error)) {
        // A cluster, or a proxy before one, behind a plain connection. Nothing was written.
        alone = true;
        for (const one of together) void send(open, [one]);
        return;
      }
      for (const { reject } of together) reject(error);
    }
  }

  async function sendAll(): Promise<void> {
    const all = waiting;
    waiting = [];
    try {
      const open = await client();
      const most = alone || open.manyKeys !== true ? 1 : MAX_TOGETHER;
      let together: Waiting[] = [];
      let length = 0;
      for (const one of all) {
        const more = one.args.reduce((sum, arg) => sum + arg.length, 0);
        if (together.length === most || (together.length > 0 && length + more > MAX_LENGTH)) {
          void send(open, together);
          [together, length] = [[], 0];
        }
        together.push(one);
        length += more;
      }
      void send(open, together);
    } catch (error) {
      for (const { reject } of all) reject(error);
    }
  }

  return (key, args) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, args, resolve, reject });
      if (waiting.length === 1) process.nextTick(sendAll);
    });
}

function isCrossSlot(error: unknown): boolean {
  return error instanceof Error && /^(ERR )?CROSSSLOT/.test(error.message);
}
