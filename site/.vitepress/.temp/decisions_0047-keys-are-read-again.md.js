import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0047: Keys are read again on demand","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0047-keys-are-read-again.md","filePath":"decisions/0047-keys-are-read-again.md"}');
const _sfc_main = { name: "decisions/0047-keys-are-read-again.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0047-keys-are-read-again-on-demand" tabindex="-1">0047: Keys are read again on demand <a class="header-anchor" href="#0047-keys-are-read-again-on-demand" aria-label="Permalink to &quot;0047: Keys are read again on demand&quot;">​</a></h1><p>A rotation needed a deployment, or a resolver. A resolver makes each event belong to a tenant, so a shop with one key could not change to one without losing what its inbox knows.</p><p><strong><code>{ read }</code> is a third kind of keyring, without tenants.</strong> It is an object, since a function is a resolver already. A file and a secrets manager are both a function of the user, so there is no driver for either.</p><p><strong>There is no timer.</strong> Keys are read when a delivery needs them: ahead, when half of <code>everyMs</code> is over, and with the delivery waiting, when all of it is. So a removed key is refused in time even if nothing arrived in between, and a function that is frozen between two requests does the same as a server.</p><p><strong>A signature that fits no key may be of a new one.</strong> The keys are read once more, for all deliveries that wait at that time. Anybody can send such a delivery, so two readings begin at least 5 s apart. The price: if a forger has just caused a reading, a delivery under a key that is newer than that reading is refused, and its sender repeats it.</p><p><strong>The last good keys outlive an outage of their source.</strong> Refusing everything would lose events of senders that give up, and the keys were right a minute ago. Whoever can block the source can therefore keep an old key valid. To end a stolen key at once, restart the processes with the new key.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0047-keys-are-read-again.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0047KeysAreReadAgain = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0047KeysAreReadAgain as default
};
