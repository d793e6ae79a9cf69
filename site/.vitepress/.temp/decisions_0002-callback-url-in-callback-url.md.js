import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0002: callbackUrl must not contain &callbackUrl=","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0002-callback-url-in-callback-url.md","filePath":"decisions/0002-callback-url-in-callback-url.md"}');
const _sfc_main = { name: "decisions/0002-callback-url-in-callback-url.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0002-callbackurl-must-not-contain-callbackurl" tabindex="-1">0002: callbackUrl must not contain &amp;callbackUrl= <a class="header-anchor" href="#0002-callbackurl-must-not-contain-callbackurl" aria-label="Permalink to &quot;0002: callbackUrl must not contain &amp;callbackUrl=&quot;">​</a></h1><p><em><a href="/decisions/0012-the-signed-string-is-read.html">Decision 0012</a> has replaced this rule by a general one, under which the string below is ambiguous as well. One part of the rule is left: a pinned URL must not have <code>&amp;callbackUrl=</code> in it.</em></p><p><strong>Context.</strong> Nothing is escaped in <a href="/concepts/security.html#the-forgery-of-the-canonical-string">the canonical string</a>, and a <code>callbackUrl</code> may contain <code>&amp;</code>, since callback URLs have queries. Our own fuzzing found what that allows. Say the service adds an undocumented free-text field that sorts before <code>callbackUrl</code>, such as <code>accountName</code>, and somebody may choose its value:</p><div class="language-text vp-adaptive-theme"><button title="Copy Code" class="copy"></button><span class="lang">text</span><pre class="shiki shiki-themes github-light github-dark vp-code" tabindex="0"><code><span class="line"><span>genuine  accountName = Abebe&amp;amount=99999.000000&amp;callbackUrl=https://shop.example/cb?x=    amount = 10.500000</span></span>
<span class="line"><span>forged   accountName = Abebe    amount = 99999.000000</span></span>
<span class="line"><span>         callbackUrl = https://shop.example/cb?x=&amp;amount=10.500000&amp;callbackUrl=https://merchant.example/…</span></span></code></pre></div><p>Both have the same signature. In the forged one the genuine amount and URL have disappeared into the tail of <code>callbackUrl</code>, and every other field is well formed.</p><p><strong>Decision.</strong> A <code>callbackUrl</code> with <code>&amp;callbackUrl=</code> in it is held as ambiguous, as one with <code>&amp;event=</code> already was (rule R4). The exception is a merchant who pins the whole URL in <code>payments.expect.callbackUrl</code>.</p><p><strong>Why.</strong> Whatever swallows the true <code>callbackUrl</code> has to contain <code>&amp;callbackUrl=</code>, and no honest URL has a reason to. Forbidding <code>&amp;amount=</code> would be a narrower rule, and would leave <code>callbackUrl</code> itself forgeable. The program in <a href="/concepts/security.html#the-forgery-of-the-canonical-string">security</a> shows the forgery; a test runs it.</p><p><strong>What was left.</strong> An optional documented field that is absent: <a href="/decisions/0009-optional-fields-that-may-be-cut-off.html">decision 0009</a>.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0002-callback-url-in-callback-url.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0002CallbackUrlInCallbackUrl = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0002CallbackUrlInCallbackUrl as default
};
