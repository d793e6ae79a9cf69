import { browserScript } from "@payhooks/pages/browser-script";

/** The dashboard's script. The build puts its text here. */
export const dashboardScript = (): string =>
  browserScript(new URL("../browser/dashboard.ts", import.meta.url));
