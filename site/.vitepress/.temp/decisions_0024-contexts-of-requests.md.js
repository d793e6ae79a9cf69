import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0024: Contexts of requests","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0024-contexts-of-requests.md","filePath":"decisions/0024-contexts-of-requests.md"}');
const _sfc_main = { name: "decisions/0024-contexts-of-requests.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0024-contexts-of-requests" tabindex="-1">0024: Contexts of requests <a class="header-anchor" href="#0024-contexts-of-requests" aria-label="Permalink to &quot;0024: Contexts of requests&quot;">​</a></h1><p><strong>Question.</strong> In which context of <code>AsyncLocalStorage</code> does Payhooks call the merchant&#39;s code? Payhooks gathers the writes of many requests, shares connections and sets timers. Without a rule, a handler finds the tenant, the transaction or the span of the request that happened to come first.</p><p><strong>Decision.</strong> Everything of Payhooks runs in the empty context. An inbox enters it at each call (<code>withOwnErrors</code>), a receiver at each step of its life, and an environment at each timer and each later turn. A test forbids timers elsewhere. Only two calls leave it for the context of a request: the handlers of a run that began when that request accepted the event, and <code>notifyWorker</code>. A later attempt may come in another process, after a restart, so it gets the empty context, always.</p><p>The empty context is the one in which Payhooks was loaded, not the one in which a receiver was made: some applications make their receiver in their first request. Node has no way to leave all contexts, so a module that is loaded during a request keeps that one.</p><p><strong>Price.</strong> Some <code>AsyncResource</code>s for each event, of 0.1 to 1 µs each on Node 20; the whole is within the noise of a delivery (60 to 75 µs in memory, 150 to 170 µs on SQLite). <code>AsyncLocalStorage.snapshot()</code> says the same more plainly, but costs about 20 µs a call on Node 20. The first attempt of an event may find more than the second one.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0024-contexts-of-requests.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0024ContextsOfRequests = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0024ContextsOfRequests as default
};
