/** The questions of the tests to a server, beside its deliveries. The merchant's own `control` answers. */
import { CONTROL_PATH } from "./application.ts";

/** Everything that became of the deliveries so far. */
export async function effectsAt(port: number): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${port}${CONTROL_PATH}effects`);
  return (await response.json()) as string[];
}

/** Closes the receiver that is there to be closed, and waits until it is. */
export async function closeReceiver(port: number): Promise<void> {
  await fetch(`http://127.0.0.1:${port}${CONTROL_PATH}close`, { method: "POST" });
}
