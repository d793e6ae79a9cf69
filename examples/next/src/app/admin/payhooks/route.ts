import { payhooksConsole } from "@payhooks/console/next";
import { receiver } from "../../../lib/receiver";

const handler = payhooksConsole(receiver, {
  // Ask your own sign-in here. Here a proxy signs people in, and overwrites this header: no one else may reach the server.
  authorize: ({ headers }) => {
    const by = headers.get("x-authenticated-user");
    return by === null ? null : { by, can: ["view", "replay", "discard"] };
  },
  // The name under which the proxy serves it. Under any other name, a page of another site could use it.
  allowedHosts: ["admin.shop.example"],
  redact: ["userId"],
});

export { handler as GET, handler as POST };
