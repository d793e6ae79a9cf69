import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0034: Slow stores, and events that may have killed their process","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0034-slow-stores-and-suspects.md","filePath":"decisions/0034-slow-stores-and-suspects.md"}');
const _sfc_main = { name: "decisions/0034-slow-stores-and-suspects.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0034-slow-stores-and-events-that-may-have-killed-their-process" tabindex="-1">0034: Slow stores, and events that may have killed their process <a class="header-anchor" href="#0034-slow-stores-and-events-that-may-have-killed-their-process" aria-label="Permalink to &quot;0034: Slow stores, and events that may have killed their process&quot;">​</a></h1><p><strong>A lease lasts longer while the store is slow.</strong> A process dates a lease by what it knows of the store&#39;s time. If answers take ten seconds, it knows that time ten seconds late, and ten more have passed when the answer arrives. So once answers took half a lease, each lease was over before a handler could be called. Nothing said so, and the event was taken again and again. Now a process measures how long the store takes to answer the writes that begin runs. If that was more than an eighth of <code>leaseMs</code>, it adds twice as much to each lease.</p><ul><li>A run whose lease is over all the same hands its event back, and the handler&#39;s attempt is taken back with it. The write that does so names the run. If another process has the event by then, nothing is written.</li><li><code>inbox-error</code> during <code>begin</code> and the health say that it happened.</li><li>The price: if a process dies while the store is slow, its events wait for others that much longer.</li><li>Redis and PostgreSQL refuse a write that was computed more than five seconds ago. So this helps up to answers of five seconds.</li></ul><p>We did not let the store date the lease. That is better, and needs another layout of the tables.</p><p><strong>Suspects are narrowed down by halves.</strong> After two deaths of a process, the events that it was running ran one at a time, although most often none of them was to blame: a deploy had killed it twice. Now they run in groups of eight, four, two and one, halved with each death.</p><ul><li>The groups are not kept anywhere. How many attempts of an event have ended in a death says how large its group may be, so processes agree without a word.</li><li>The event to blame kills its process as often as before: once for each attempt that it has.</li><li>The others lose attempts to it. So one that has a single attempt left runs alone, and no event is held because of another one. The engine asks the runner how many attempts a handler has. A process that lacks the handler does not know, and lets the event run alone.</li></ul></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0034-slow-stores-and-suspects.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0034SlowStoresAndSuspects = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0034SlowStoresAndSuspects as default
};
