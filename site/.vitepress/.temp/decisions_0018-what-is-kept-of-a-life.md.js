import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse(`{"title":"0018: what is kept of an event's life","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0018-what-is-kept-of-a-life.md","filePath":"decisions/0018-what-is-kept-of-a-life.md"}`);
const _sfc_main = { name: "decisions/0018-what-is-kept-of-a-life.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0018-what-is-kept-of-an-events-life" tabindex="-1">0018: what is kept of an event&#39;s life <a class="header-anchor" href="#0018-what-is-kept-of-an-events-life" aria-label="Permalink to &quot;0018: what is kept of an event&#39;s life&quot;">​</a></h1><p><strong>The question.</strong> A person on duty asks when an event was delivered, how often, which attempts failed, and who replayed it. What do we keep to answer that? A finished record then took 300 bytes in Redis, and a copy that is answered as a duplicate writes nothing. Nearly all events go through without anything to tell, and for these neither figure may change.</p><p><strong>The decision.</strong></p><ul><li>The history of an event has a line for each failed attempt, each run whose process died, and each decision of a person. These lines are part of writes that are made anyway. At most 50 are kept.</li><li>A copy of an event that is waiting, running or held is counted, and that is a write. Copies within a second of one another, or of the acceptance, count as one. So nobody can cause more than one write a second for one event.</li><li>A copy of an event that has ended writes nothing, and is not counted. Notices tell of it.</li><li>When an event ends that was done at its first attempt and had no counted copy, its history is dropped, as before. Of any other event the first line and the last seven are kept, with 120 characters of each text, which is below 3 KB. They go with the record.</li></ul><p><strong>Why not count every copy.</strong> Anybody who has seen one delivery can send copies of it. With a write for each, a stranger could write to the store as fast as he can send. A counter in memory would say something else in each process, and nothing after a restart.</p><p><strong>Why not count copies of finished events.</strong> It would be one more write for each redelivery after an outage, which is when the store has most to do, and it would make the record of an uneventful event larger. The count matters for events that have not come to their end.</p><p><strong>What it costs.</strong> While a store takes no writes, a copy of an unfinished event used to be answered 200. Now it is answered 503 if it comes a second or more after the last one that counted. The service sends it again.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0018-what-is-kept-of-a-life.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0018WhatIsKeptOfALife = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0018WhatIsKeptOfALife as default
};
