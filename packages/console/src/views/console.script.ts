import { browserScript } from "@payhooks/pages/browser-script";

/** The page's script. The build puts its text here. */
export const consoleScript = (): string => browserScript(new URL("../browser/console.ts", import.meta.url));
