import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0005: An inbox can run one job at once","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0005-run-one-job-at-once.md","filePath":"decisions/0005-run-one-job-at-once.md"}');
const _sfc_main = { name: "decisions/0005-run-one-job-at-once.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0005-an-inbox-can-run-one-job-at-once" tabindex="-1">0005: An inbox can run one job at once <a class="header-anchor" href="#0005-an-inbox-can-run-one-job-at-once" aria-label="Permalink to &quot;0005: An inbox can run one job at once&quot;">​</a></h1><p><em>Overtaken in part by <a href="/decisions/0013-one-record-one-store-one-write.html">0013</a>: there are no jobs any more, and <code>runJob</code> is now <code>runEvent</code>. With <code>ack: &quot;handled&quot;</code> the write that accepts an event also begins it; if its process dies, the event is found when its lease ends, not by a delayed job. What is said here about free attempts, at most one a second, still holds.</em></p><p><strong>Context.</strong> Usually a worker runs a job when it comes to it. Three callers need one certain job run now: <code>ack: &quot;handled&quot;</code>, whose answer waits for it; <code>run: &quot;after-response&quot;</code>, which runs the event of this request first; and push carriers, which bring a job with them. They also need to know how it ended. An inbox that only hands jobs to workers cannot tell them.</p><p><strong>Decision.</strong> <code>Inbox.runJob(runner, job)</code> takes the lease, runs the job without waiting for its backoff, stores the result, and returns the slot&#39;s state. With <code>ack: &quot;handled&quot;</code> the job is put into the queue as well, with a delay of <code>handledBudgetMs</code>.</p><p>An attempt that comes before its time is free. If it fails, it does not count, and the next attempt stays due when it was due, even if the handler threw a <code>RetryAfter</code>. It counts only if the process dies in it. An event has at most one free attempt a second: when asked more often, <code>runJob</code> runs nothing and answers <code>waiting</code>. The last attempts that a memory inbox gives when it closes are not limited in this way.</p><p><strong>Why.</strong> Anybody who has seen one genuine callback can send copies of it. When each copy was an attempt like any other, 25 copies within 85 ms of an outage used up all attempts of their event. It was held as <code>exhausted</code>, and in a durable inbox the service was answered 200 for it. Now copies can neither use up an event nor put it off. A death has to count, since otherwise an event that kills its process would do so for ever.</p><p><code>runJob</code> and a worker may both try to run a job: the lease decides. The delayed job is for a process that dies in the middle of its work. It makes sure that the event is found and run even if the service never sends it again. The delay keeps workers from taking the job while the request is running it.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0005-run-one-job-at-once.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0005RunOneJobAtOnce = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0005RunOneJobAtOnce as default
};
