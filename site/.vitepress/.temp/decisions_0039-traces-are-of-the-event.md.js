import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0039: Traces are of the event","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0039-traces-are-of-the-event.md","filePath":"decisions/0039-traces-are-of-the-event.md"}');
const _sfc_main = { name: "decisions/0039-traces-are-of-the-event.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0039-traces-are-of-the-event" tabindex="-1">0039: Traces are of the event <a class="header-anchor" href="#0039-traces-are-of-the-event" aria-label="Permalink to &quot;0039: Traces are of the event&quot;">​</a></h1><p><strong>Question.</strong> A handler may run minutes after its delivery, in another process, more than once. Which trace is it in, and how does the core know without knowing OpenTelemetry?</p><p><strong>A trace is the event&#39;s.</strong> The span of the acceptance is under the framework&#39;s, and every later call of a handler is a child of the acceptance. So one trace shows the first attempt, the retries, the hold and what ran after a replay. The record keeps the acceptance&#39;s context: one text of 55 characters with a version, beside what a run needs, until the event ends. A text that is damaged or unknown is ignored, as nothing depends on it. Links instead of children would be closer to the messaging conventions, but few tools show them, and each attempt would be a trace of its own.</p><p><strong>The sender&#39;s trace is not continued.</strong> Its header would let a stranger put all events into one trace, and decide which are sampled. Frameworks&#39; instrumentation often continues it. If the active span is in the trace that a header of the delivery names, the acceptance begins a trace of its own, with a link. The sender&#39;s baggage does not reach a handler.</p><p><strong>The core has a seam of five functions.</strong> <code>Instrumentation</code> is around a delivery and around a call of a handler, and is told of notices, of holds and of events that a later one has overtaken. Without one, a delivery and a call cost a comparison with null. The notice <code>started</code> could not serve: it is told later, when the handler already runs, and an observer cannot make a span active. What an instrumentation throws is a warning, and changes nothing for the event. Metrics are one table, which OpenTelemetry and the scrape route fill.</p><p><strong>Price.</strong> Records of an instrumented receiver have one field more. An earlier version of Payhooks cannot read it and leaves such events to the others, so an instrumentation is turned on when all processes have this version.</p><p><strong>What it may cost.</strong> An event may become 3 % dearer with the API of OpenTelemetry alone, and 15 % with an SDK that samples every span. <code>npm run bench -- --otel</code> measures both, from the request to the end of its handler.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0039-traces-are-of-the-event.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0039TracesAreOfTheEvent = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0039TracesAreOfTheEvent as default
};
