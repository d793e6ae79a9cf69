import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0040: Leases of tasks","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0040-leases-of-tasks.md","filePath":"decisions/0040-leases-of-tasks.md"}');
const _sfc_main = { name: "decisions/0040-leases-of-tasks.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0040-leases-of-tasks" tabindex="-1">0040: Leases of tasks <a class="header-anchor" href="#0040-leases-of-tasks" aria-label="Permalink to &quot;0040: Leases of tasks&quot;">​</a></h1><p>Some tasks are for one process at a time: looking up payments that had no callback, for example. They need a lease that works on every inbox, and a place for what must survive the process.</p><p><strong>A shared text is a record without slots.</strong> It lies in the store as a claim of a reference does, and changes by the same compare-and-swap. So no store has to learn anything new, and memory, SQLite, Redis, Redis Cluster and PostgreSQL have it at once. It has nothing that is due, and nothing that is counted or listed. It expires 30 days after its last write. <code>readNote</code> and <code>writeNote</code> of a store were no help: if two processes write, one of the texts gets lost.</p><p><strong>A lease is such a text.</strong> It has a token, an end on the store&#39;s clock, and the holder&#39;s note. Whoever writes compares the token, so a process that wakes up after its lease can write nothing. An end that is further away than the lease is long was dated by a wrong clock, and does not count.</p><p><strong>The note goes with the lease</strong>, in one write. If it lay elsewhere, a process could lose the lease between the two. A next holder continues from the note of the last one, which is all that <code>watch</code> needs: who was given up, when the next round is due, and where a round was broken off.</p><p><strong><code>watch</code> asks the merchant when each payment began.</strong> Otherwise it would have to keep the time at which it first saw each reference, for all open payments of a shop. The merchant&#39;s own table has it.</p><p><strong>A payment is given up on an answer, not on a failure.</strong> While the service does not answer, nobody knows more than before. After an outage of three days, everything that is open would be given up at once.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0040-leases-of-tasks.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0040LeasesOfTasks = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0040LeasesOfTasks as default
};
