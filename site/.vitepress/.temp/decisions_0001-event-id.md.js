import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse(`{"title":"0001: eventId is the record's hash and the slot's hash","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0001-event-id.md","filePath":"decisions/0001-event-id.md"}`);
const _sfc_main = { name: "decisions/0001-event-id.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0001-eventid-is-the-records-hash-and-the-slots-hash" tabindex="-1">0001: eventId is the record&#39;s hash and the slot&#39;s hash <a class="header-anchor" href="#0001-eventid-is-the-records-hash-and-the-slots-hash" aria-label="Permalink to &quot;0001: eventId is the record&#39;s hash and the slot&#39;s hash&quot;">​</a></h1><p><strong>Context.</strong> A record holds everything about one transaction or webhook. In it, each (event, status, variant) has a slot. An operator, a queue or a replay knows an event by its <code>eventId</code> alone, so the id has to lead to the record. One hash over everything (tenant, flow, id, event, status, variant) cannot do that, because a hash is one-way. It would need an index from ids to records, and an index can disagree with what it leads to. On Redis an atomic step is a script, and in a cluster a script may only touch keys of one hash slot.</p><p><strong>Decision.</strong> <code>eventId</code> is two hashes, one after the other. The first, hash(tenant, flow, id), has 32 hex digits and is the record&#39;s key. The second, hash(event, status, variant), has 16 hex digits and names the slot in the record.</p><p><strong>Why.</strong> Every operation on an event, <code>read(eventId)</code> and replays included, is one step on one key. There is no index to keep. The ids of two events show whether they belong to one record. That gives nothing away, since both parts are hashes.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0001-event-id.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0001EventId = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0001EventId as default
};
