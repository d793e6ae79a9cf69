import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0004: A handler that gave up does not stop the others","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0004-giving-up.md","filePath":"decisions/0004-giving-up.md"}');
const _sfc_main = { name: "decisions/0004-giving-up.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0004-a-handler-that-gave-up-does-not-stop-the-others" tabindex="-1">0004: A handler that gave up does not stop the others <a class="header-anchor" href="#0004-a-handler-that-gave-up-does-not-stop-the-others" aria-label="Permalink to &quot;0004: A handler that gave up does not stop the others&quot;">​</a></h1><p><strong>Context.</strong> An event can have several handlers, each with its own <code>maxAttempts</code>. When one of them has no attempts left, others may still be waiting for their next attempt. A held event is not retried, so holding the event at once would stop them.</p><p><strong>Decision.</strong> The event is held once none of its handlers has attempts left. When a handler fails its last attempt, a <code>given-up</code> notice says so at once, and is logged as an error.</p><p><strong>Why.</strong> Handlers are independent: that a notification cannot be sent is no reason not to book the money. Nobody learns of the failure late, because the notice comes with the last attempt. When the held event is replayed, the handlers run that have not finished.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0004-giving-up.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0004GivingUp = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0004GivingUp as default
};
