import type { ScriptAnswer } from "../answers.ts";

/**
 * Sends something to the server. `failure` says what went wrong, or is null. Everything in the answer may be missing:
 * something else than the console may have answered.
 */
export async function post(
  body: unknown,
): Promise<{ readonly answer: Partial<ScriptAnswer>; readonly failure: string | null }> {
  try {
    const response = await fetch(location.pathname, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Payhooks-Console": "1" },
      body: JSON.stringify(body),
    });
    const answer = ((await response.json().catch(() => null)) ?? {}) as Partial<ScriptAnswer>;
    const failure = answer.ok === true ? null : (answer.message ?? `The server answered ${response.status}.`);
    return { answer, failure };
  } catch {
    return { answer: {}, failure: "The server does not answer." };
  }
}
