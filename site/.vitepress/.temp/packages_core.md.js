import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"@payhooks/core","description":"","frontmatter":{},"headers":[],"relativePath":"packages/core.md","filePath":"packages/core.md"}');
const _sfc_main = { name: "packages/core.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="payhookscore" tabindex="-1">@payhooks/core <a class="header-anchor" href="#payhookscore" aria-label="Permalink to &quot;@payhooks/core&quot;">​</a></h1><p>The core of Payhooks. It receives a payment service&#39;s callbacks and connected-account webhooks. It verifies them over the bytes that arrived, recognises copies, stores each event before it is acknowledged, and runs your handlers with retries.</p><p>The core knows no web framework. Use it through an adapter: <a href="/packages/express.html"><code>@payhooks/express</code></a>, <a href="/packages/fastify.html"><code>@payhooks/fastify</code></a>, <a href="/packages/hono.html"><code>@payhooks/hono</code></a> or <a href="/packages/next.html"><code>@payhooks/next</code></a>. If your framework&#39;s handlers take a <code>Request</code> and return a <code>Response</code>, you can also use <code>@payhooks/core/fetch</code>.</p><table tabindex="0"><thead><tr><th>entry point</th><th>what it has</th></tr></thead><tbody><tr><td><code>@payhooks/core</code></td><td><code>createReceiver</code>, <code>memoryInbox</code>, the types of events, errors</td></tr><tr><td><code>@payhooks/core/sqlite</code></td><td><code>sqliteInbox</code></td></tr><tr><td><code>@payhooks/core/postgres</code></td><td><code>postgresInbox</code></td></tr><tr><td><code>@payhooks/core/mysql</code></td><td><code>mysqlInbox</code>, for MySQL and MariaDB</td></tr><tr><td><code>@payhooks/core/redis</code></td><td><code>redisInbox</code></td></tr><tr><td><code>@payhooks/core/effects</code></td><td>effects that happen <a href="/guides/exactly-once.html">exactly once</a>, with any database client; <code>@payhooks/core/effects/postgres</code>, <code>/mysql</code> and <code>/sqlite</code> are for known clients</td></tr><tr><td><code>@payhooks/core/fetch</code></td><td>mounting on web-standard runtimes</td></tr><tr><td><code>@payhooks/core/testing</code></td><td>tools for <a href="/guides/testing.html">your own tests</a></td></tr><tr><td><code>@payhooks/core/signature</code></td><td>the signature checks alone</td></tr><tr><td><code>@payhooks/core/inbox</code></td><td><code>createInbox</code>, for <a href="/guides/adding-a-store.html">a store of your own</a></td></tr><tr><td><code>@payhooks/core/adapter</code></td><td>what adapters share, for <a href="/contributing.html#add-an-adapter">an adapter of your own</a></td></tr><tr><td><code>@payhooks/core/otel</code></td><td><code>otel</code>: traces and metrics with OpenTelemetry; needs <code>@opentelemetry/api</code></td></tr><tr><td><code>@payhooks/core/metrics</code></td><td><code>prometheusMetrics</code>: the same metrics for a scraper, without OpenTelemetry</td></tr></tbody></table><p>Begin with <a href="/">the README of the project</a>.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("packages/core.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const core = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  core as default
};
