import { ICON } from "@payhooks/pages";
import { type Context, Hono } from "hono";
import type { Change } from "../changes.ts";
import type { ChangeStream } from "../control/stream.ts";
import type { Sandbox } from "../sandbox.ts";
import { SandboxError } from "../sandbox-error.ts";
import { bodyText } from "../server/body.ts";
import type { ServerEnv } from "../server/connection.ts";
import { MEDIUMS } from "../wire.ts";
import { afterCheckoutPage, checkoutPage, plainPage } from "./checkout.ts";
import { breakCard, connectCard, keysCard } from "./controls.ts";
import { dashboardScript } from "./dashboard.script.ts";
import { dashboardPage } from "./dashboard.ts";
import { deliveryDetail } from "./delivery-row.ts";
import { type FeedFilter, feedFragments, feedLists, readFilter } from "./feed.ts";
import type { Fragment } from "./fragment.ts";
import { CHECKOUT_CSS, DASHBOARD_CSS } from "./styles.ts";

/** The pages: the hosted checkout, and the dashboard with its live events. */
export function pageRoutes(sandbox: Sandbox, stream: ChangeStream, callbackUrl: string): Hono<ServerEnv> {
  const pages = new Hono<ServerEnv>();

  pages.get("/", (c) => dashboardPage(c, sandbox, callbackUrl, readFilter(c.req.query())));
  pages.get("/sandbox/events", (c) => {
    const filter = readFilter(c.req.query());
    return stream.open(c, (changes) => fragments(sandbox, filter, changes));
  });
  pages.get("/sandbox/parts/lists", (c) => c.html(feedLists(sandbox, readFilter(c.req.query()))));
  pages.get("/sandbox/parts/deliveries/:id", (c) => {
    const delivery = sandbox.deliveries.get(c.req.param("id"));
    return delivery ? c.html(deliveryDetail(delivery)) : c.notFound();
  });

  const asset = (path: string, type: string, content: () => string) =>
    pages.get(`/sandbox/assets/${path}`, (c) => c.body(content(), 200, { "Content-Type": type }));
  asset("dashboard.css", "text/css; charset=utf-8", () => DASHBOARD_CSS);
  asset("checkout.css", "text/css; charset=utf-8", () => CHECKOUT_CSS);
  asset("dashboard.js", "text/javascript; charset=utf-8", dashboardScript);
  asset("icon.svg", "image/svg+xml", () => ICON);

  const unknownCheckoutPage = (c: Context) =>
    plainPage(c, "Checkout not found", "There is no checkout at this address.", 404);
  pages.get("/checkout/:id", (c) => {
    const record = sandbox.transactions.get(c.req.param("id"));
    if (!record?.order.supportedMediums) return unknownCheckoutPage(c);
    return record.awaitsCustomer ? checkoutPage(c, record, null) : afterCheckoutPage(c, record);
  });
  pages.post("/checkout/:id", async (c) => {
    const id = c.req.param("id");
    const record = sandbox.transactions.get(id);
    if (!record?.order.supportedMediums) return unknownCheckoutPage(c);
    const form = new URLSearchParams(await bodyText(c));
    const decision = (["pay", "fail", "cancel"] as const).find((choice) => choice === form.get("decision"));
    const medium = MEDIUMS.find((name) => name === form.get("medium"));
    if (decision === undefined) return checkoutPage(c, record, "Choose to pay, to fail or to cancel.");
    try {
      sandbox.transactions.decide(id, decision, medium);
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      if (error.code === "ERR_PARAMETERS") return checkoutPage(c, record, error.message);
      // It was decided before, by a second click or in another tab. The next page shows the result.
    }
    return c.redirect(`/checkout/${id}`, 303);
  });
  pages.get("/checkout-success", (c) =>
    plainPage(c, "Paid", "A checkout from the dashboard ends here. Yours ends at its redirects.success."),
  );
  pages.get("/checkout-failed", (c) =>
    plainPage(c, "Not paid", "A checkout from the dashboard ends here. Yours ends at its redirects.failed."),
  );
  return pages;
}

/** The parts of the dashboard that changes affect. */
function fragments(sandbox: Sandbox, filter: FeedFilter, changes: readonly Change[]): Fragment[] {
  const topics = new Set(changes.map(({ topic }) => topic));
  const has = (...some: readonly Change["topic"][]) => some.some((topic) => topics.has(topic));
  if (has("reset")) return [{ id: "" }];
  return [
    ...feedFragments(sandbox, filter, changes),
    ...(has("keys") ? [{ id: "keys", html: String(keysCard(sandbox)) }] : []),
    ...(has("fault") ? [{ id: "break", html: String(breakCard(sandbox.faults.list())) }] : []),
    ...(has("account", "settlement", "settings")
      ? [{ id: "connect", html: String(connectCard(sandbox)) }]
      : []),
  ];
}
