import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"@payhooks/pages","description":"","frontmatter":{},"headers":[],"relativePath":"packages/pages.md","filePath":"packages/pages.md"}');
const _sfc_main = { name: "packages/pages.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="payhookspages" tabindex="-1">@payhooks/pages <a class="header-anchor" href="#payhookspages" aria-label="Permalink to &quot;@payhooks/pages&quot;">​</a></h1><p>What the pages of the sandbox and of the console share: colours and styles, the HTML document with its content security policy, escaping, small parts, live updates. This package is not published: the build puts it into both.</p><p><code>src/browser</code> of this package, of the sandbox and of the console has the scripts that run in browsers. They are TypeScript with a <code>tsconfig.json</code> of their own, which knows the DOM and not Node. A module <code>*.script.ts</code> beside the pages returns such a script as one text. The build publishes that text. From the sources, the text is made anew whenever a browser asks for it, so a change shows when you load the page again. <a href="/decisions/0026-scripts-of-the-pages.html">Decision 0027</a> says why.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("packages/pages.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const pages = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  pages as default
};
