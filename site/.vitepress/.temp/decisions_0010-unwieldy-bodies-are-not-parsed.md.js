import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0010: A payment callback of a thousand parts is not parsed","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0010-unwieldy-bodies-are-not-parsed.md","filePath":"decisions/0010-unwieldy-bodies-are-not-parsed.md"}');
const _sfc_main = { name: "decisions/0010-unwieldy-bodies-are-not-parsed.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0010-a-payment-callback-of-a-thousand-parts-is-not-parsed" tabindex="-1">0010: A payment callback of a thousand parts is not parsed <a class="header-anchor" href="#0010-a-payment-callback-of-a-thousand-parts-is-not-parsed" aria-label="Permalink to &quot;0010: A payment callback of a thousand parts is not parsed&quot;">​</a></h1><p><strong>Context.</strong> All requests of a process share one event loop, so a costly request delays the others. The signature of a payment callback is inside its JSON: the whole body has to be parsed before anything in it can be believed. 60 KB of brackets, or of 3,000 short names, keep a process busy for milliseconds. 160 such requests a second from one sender raised the 99th percentile of good deliveries to 5 and 9 times its value (<code>npm run bench -- --abuse</code>). A signed body can cost more, since more is done with it. A webhook of 20,000 empty objects took 20 ms. A <code>callbackUrl</code> with a host of 60 KB took half a second, since the engine&#39;s time grows with the square of a host&#39;s length.</p><p><strong>Decision.</strong> A body of more than 8 KiB is first looked at byte by byte. Its members, elements and nested values are counted, as far as they are outside of strings.</p><table tabindex="0"><thead><tr><th>body</th><th>parts</th><th>then</th></tr></thead><tbody><tr><td>payment callback</td><td>over 1,000</td><td>answered 400 <code>ERR_BODY_NOT_JSON</code>, unread</td></tr><tr><td>webhook, once it is authentic</td><td>over 5,000</td><td>held as <code>malformed</code>, unread</td></tr></tbody></table><p>A <code>callbackUrl</code> whose host has more than 512 characters, a user and a port included, is not well formed.</p><p><strong>Why.</strong> The look is cheap: it ends at the 1,001st part, after some 10 KB of such a body. A genuine callback has about 1 KiB and 12 members, and is not looked at. A lower <code>maxBodyBytes</code> would stop the same bodies, but would refuse long messages too. Names of the Internet have at most 253 characters. With these bounds no request of 64 KiB stops the event loop for more than 20 ms: <code>test/security/event-loop.test.ts</code> counts what is asked of the engine, and the bench shows the times.</p><p><strong>Price.</strong> A genuine callback of that kind, which the specification does not know, would be refused instead of held. It is not acknowledged, so the service keeps it, and a <code>refused</code> notice tells. A genuine webhook of that kind would be held until a version of Payhooks with a higher bound reads it.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0010-unwieldy-bodies-are-not-parsed.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0010UnwieldyBodiesAreNotParsed = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0010UnwieldyBodiesAreNotParsed as default
};
