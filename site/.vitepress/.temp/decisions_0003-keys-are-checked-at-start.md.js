import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0003: Keys and secrets are checked at the start, not at construction","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0003-keys-are-checked-at-start.md","filePath":"decisions/0003-keys-are-checked-at-start.md"}');
const _sfc_main = { name: "decisions/0003-keys-are-checked-at-start.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0003-keys-and-secrets-are-checked-at-the-start-not-at-construction" tabindex="-1">0003: Keys and secrets are checked at the start, not at construction <a class="header-anchor" href="#0003-keys-and-secrets-are-checked-at-the-start-not-at-construction" aria-label="Permalink to &quot;0003: Keys and secrets are checked at the start, not at construction&quot;">​</a></h1><p><strong>Context.</strong> <code>createReceiver({ payments: { publicKey: process.env.PAY_PUBLIC_KEY } })</code> stands at the top of a module. Modules are also evaluated where there are no secrets: by <code>next build</code>, by tests, by type generators, and when a Worker is deployed.</p><p><strong>Decision.</strong> Keys are read and checked by <code>start()</code>, or by the first delivery. Construction does no I/O and starts no timer. It checks only what would be wrong in every environment: names of options, numbers, field names, URLs.</p><p><strong>Why.</strong> A build must not need production secrets. Nothing is lost by the delay. Server adapters call <code>start()</code> in the turn after the mounting, so a wrong set-up ends the process there, before it takes traffic. Where there is no such moment, the first delivery is answered 500 <code>ERR_MISCONFIGURED</code>, and the service sends it again.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0003-keys-are-checked-at-start.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0003KeysAreCheckedAtStart = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0003KeysAreCheckedAtStart as default
};
