import { createInterface } from "node:readline/promises";
import { printText } from "./printer.ts";
import type { Terminal } from "./terminal.ts";

/** True if a person reads the output of the command, and can answer. */
export function canAsk({ isJson }: Terminal): boolean {
  return !isJson && process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/** Asks the person at the terminal. Null if the answer is Ctrl-C, or the end of the input. */
async function ask(question: string): Promise<string | null> {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  const interrupted = new AbortController();
  for (const end of ["SIGINT", "close"] as const) reader.once(end, () => interrupted.abort());
  try {
    return (await reader.question(question, { signal: interrupted.signal })).trim();
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    printText("stdout", "\n");
    return null;
  } finally {
    reader.close();
  }
}

/** Asks somebody to type these words. False if anything else is typed. */
export async function confirmByTyping(words: string): Promise<boolean> {
  return (await ask(`Type ${words} to go on: `)) === words;
}
