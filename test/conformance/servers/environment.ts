import type { Secrets } from "../application.ts";

/** The secrets, where the runtime has `process.env`. */
export function secrets(): Secrets {
  const { PAY_PUBLIC_KEY = "", CONNECT_WEBHOOK_SECRET = "", PAY_NAMES = "" } = process.env;
  return { PAY_PUBLIC_KEY, CONNECT_WEBHOOK_SECRET, PAY_NAMES };
}

/** Tells the test where the server listens, and on what it runs. */
export function announce(port: number, runtime = `node ${process.versions.node}`): void {
  console.log(`listening on ${port} with ${runtime}`);
}
