import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0017: layers","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0017-layers.md","filePath":"decisions/0017-layers.md"}');
const _sfc_main = { name: "decisions/0017-layers.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0017-layers" tabindex="-1">0017: layers <a class="header-anchor" href="#0017-layers" aria-label="Permalink to &quot;0017: layers&quot;">​</a></h1><p><strong>The question.</strong> Thirty-two files of the core lay flat beside its folders. Two groups of files imported each other in a circle. Nobody could say which of two files may import the other.</p><p><strong>The decision.</strong> Each file of <code>packages/core/src</code> is in a folder, and each folder belongs to a layer. A file imports from its own folder and from lower layers. It never imports from a higher layer, nor from another folder of its layer.</p><table tabindex="0"><thead><tr><th>layer</th><th>folders</th><th>what is there</th></tr></thead><tbody><tr><td>12</td><td>the entry points</td><td>what users import; they re-export from others, or make an inbox of parts</td></tr><tr><td>11</td><td><code>http</code>, <code>testing</code></td><td>mounting a flow, bodies, the work route; what users&#39; tests take</td></tr><tr><td>10</td><td><code>receiver</code></td><td>the receiver, its life, its intake, running handlers</td></tr><tr><td>9</td><td><code>effects</code></td><td>effects in the merchant&#39;s own transaction</td></tr><tr><td>8</td><td><code>memory</code>, <code>sqlite</code>, <code>redis</code>, <code>postgres</code></td><td>a store of records each</td></tr><tr><td>7</td><td><code>flows</code>, <code>handlers</code></td><td>verifying and reading deliveries; handlers and their registry</td></tr><tr><td>6</td><td><code>inbox</code></td><td>the engine, and the interface of a store</td></tr><tr><td>5</td><td><code>inbox/record</code></td><td>records and the table of deduplication, without any I/O</td></tr><tr><td>4</td><td><code>notices</code></td><td>what is told to observers and loggers</td></tr><tr><td>3</td><td><code>signature</code></td><td>keys, canonical strings, RSA and HMAC</td></tr><tr><td>2</td><td><code>protocol</code></td><td>events, amounts, JSON, errors, answers</td></tr><tr><td>1</td><td><code>time</code></td><td>clocks, deadlines, and the seam for everything that comes from outside</td></tr></tbody></table><p><code>test/package/layers.test.ts</code> has this table as a list. It reads every import, types included. It fails if an import goes up or across, if files import each other in a circle, and if a file imports an entry point.</p><p><strong>Why the stores are above the engine.</strong> <code>createInbox</code> makes an inbox of a store, so a file that makes an inbox knows both the store and the engine. The engine knows stores by their interface alone, which is in the engine&#39;s folder.</p><p><strong>Tests</strong> of the core lie in folders of the same names.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0017-layers.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0017Layers = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0017Layers as default
};
