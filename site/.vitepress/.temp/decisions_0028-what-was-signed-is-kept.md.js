import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0028: What was signed is what is kept","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0028-what-was-signed-is-kept.md","filePath":"decisions/0028-what-was-signed-is-kept.md"}');
const _sfc_main = { name: "decisions/0028-what-was-signed-is-kept.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0028-what-was-signed-is-what-is-kept" tabindex="-1">0028: What was signed is what is kept <a class="header-anchor" href="#0028-what-was-signed-is-what-is-kept" aria-label="Permalink to &quot;0028: What was signed is what is kept&quot;">​</a></h1><p>A record kept the body of a delivery as it was spelt. Whoever read the record had to undo the spelling once more: the look for references, the console&#39;s redaction, the page of an event. Five attacks lived on the difference between what was signed and how it was written.</p><p><strong>Decision.</strong> A record keeps what the signature covers, and nothing that it does not cover:</p><table tabindex="0"><thead><tr><th>flow</th><th>kept</th></tr></thead><tbody><tr><td>payment callbacks</td><td>the canonical string, the signature, the fingerprint of the key</td></tr><tr><td>webhooks</td><td>the bytes of the body, the signature, the fingerprint of the key</td></tr><tr><td>look-ups</td><td>the fields as JSON</td></tr></tbody></table><p>What handlers get is read from it, by the same judgement as at the door. What a person sees is <code>receiver.contents(delivery)</code>: the fields that handlers get, those that are not certain marked, and the signed text below. Nobody behind the door parses a callback&#39;s JSON again.</p><p><strong>Labels.</strong> A text of up to 512 bytes by which an event is found is kept whole. A longer one is its whole SHA-256, and compared as such. Two references that begin alike are two references.</p><p><strong>The price.</strong> The body as it was sent is not kept: member order, white space and fields that nobody signed are gone when the delivery was acknowledged. A record of an earlier format is unreadable: nothing was released with it.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0028-what-was-signed-is-kept.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0028WhatWasSignedIsKept = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0028WhatWasSignedIsKept as default
};
