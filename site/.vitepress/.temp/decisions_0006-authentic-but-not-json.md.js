import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0006: Authentic webhooks that are not JSON are answered 400","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0006-authentic-but-not-json.md","filePath":"decisions/0006-authentic-but-not-json.md"}');
const _sfc_main = { name: "decisions/0006-authentic-but-not-json.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0006-authentic-webhooks-that-are-not-json-are-answered-400" tabindex="-1">0006: Authentic webhooks that are not JSON are answered 400 <a class="header-anchor" href="#0006-authentic-webhooks-that-are-not-json-are-answered-400" aria-label="Permalink to &quot;0006: Authentic webhooks that are not JSON are answered 400&quot;">​</a></h1><p><strong>Context.</strong> A delivery that is authentic but cannot be used is acknowledged and held, since the service would not send anything better. Can a delivery that is not JSON be authentic? A payment callback cannot: its signature is a field of its JSON. A connected-account webhook can: its HMAC covers the raw bytes, whatever they are.</p><p><strong>Decision.</strong> In both flows a body that is not a JSON object in UTF-8 without a byte order mark is answered 400 <code>ERR_BODY_NOT_JSON</code>, before <a href="/concepts/deduplication.html#the-table">the table of deduplication</a> is asked.</p><p><strong>Why.</strong> A 200 says that the event was read and kept. Without a JSON object there is no event and no <code>idempotency_key</code>, and a replay would find nothing to read. Since the delivery is not acknowledged, the service sends it again and shows it in its dispatch log. And both flows answer alike.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0006-authentic-but-not-json.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0006AuthenticButNotJson = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0006AuthenticButNotJson as default
};
