import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0014: Histories are simulated","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0014-histories-are-simulated.md","filePath":"decisions/0014-histories-are-simulated.md"}');
const _sfc_main = { name: "decisions/0014-histories-are-simulated.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0014-histories-are-simulated" tabindex="-1">0014: Histories are simulated <a class="header-anchor" href="#0014-histories-are-simulated" aria-label="Permalink to &quot;0014: Histories are simulated&quot;">​</a></h1><p><strong>Context.</strong> Kill tests and fault tests play some hundred moments of death, on real processes and a real Redis, in minutes. But what goes wrong in an inbox goes wrong in an order of events that seldom comes about by itself: a write that lands after its sender was told that its outcome is unknown, or a machine that slept after it had begun an event and before it called the handler. Such orders have to be made.</p><p><strong>Decision.</strong> The engine takes time, timers, turns of the event loop and random tokens from an <code>Environment</code>, and everything else from a <code>RecordStore</code>. Whoever provides both controls everything that is otherwise left to chance. <code>test/simulation</code> provides both, and plays histories that are rolled from a seed (<a href="/simulation.html">simulation</a>). Everything that happens is written down. When a history is over, invariants are checked against the whole log. They know of the engine only what it writes, answers, calls and tells.</p><p><strong>Chance has no state.</strong> A roll depends on the seed and on what it is rolled for, and on nothing else. If one fault is taken away, everything else is rolled as before. That is how a failing history is made smaller. With a generator that has a state, taking a fault away would make another history.</p><p><strong>The core is bundled for a run, so that it can be given a mistake.</strong> A mistake replaces one piece of the core&#39;s source, which must occur exactly once, by another. A mistake that no longer fits the source fails its test, instead of proving nothing.</p><p><strong>Why not the real stores.</strong> They have a clock of their own, and take a thousand times longer. A test of its own shows that they agree with the simulated store.</p><p><strong>Price.</strong> Invariants have to know what excuses a violation: that a process stood still, or that the store forgot. Each excuse can hide a mistake. So there is a list of mistakes that must be found: it shows how much is still seen.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0014-histories-are-simulated.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0014HistoriesAreSimulated = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0014HistoriesAreSimulated as default
};
