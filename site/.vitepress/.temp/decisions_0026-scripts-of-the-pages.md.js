import { ssrRenderAttrs } from "vue/server-renderer";
import { useSSRContext } from "vue";
import { _ as _export_sfc } from "./plugin-vue_export-helper.1tPrXgE0.js";
const __pageData = JSON.parse('{"title":"0026: The scripts of the pages are TypeScript, bundled when the package is built","description":"","frontmatter":{},"headers":[],"relativePath":"decisions/0026-scripts-of-the-pages.md","filePath":"decisions/0026-scripts-of-the-pages.md"}');
const _sfc_main = { name: "decisions/0026-scripts-of-the-pages.md" };
function _sfc_ssrRender(_ctx, _push, _parent, _attrs, $props, $setup, $data, $options) {
  _push(`<div${ssrRenderAttrs(_attrs)}><h1 id="0026-the-scripts-of-the-pages-are-typescript-bundled-when-the-package-is-built" tabindex="-1">0026: The scripts of the pages are TypeScript, bundled when the package is built <a class="header-anchor" href="#0026-the-scripts-of-the-pages-are-typescript-bundled-when-the-package-is-built" aria-label="Permalink to &quot;0026: The scripts of the pages are TypeScript, bundled when the package is built&quot;">​</a></h1><p>The pages of the sandbox and of the console have a script each. Both were JavaScript in template strings: no compiler read them, no linter, and a misspelt name showed only in a browser. A page must work in two ways: as it is published, and from the TypeScript sources, which <code>npm start</code> and the tests run without a build.</p><p><strong>Where they are.</strong> <code>src/browser</code> of a package is what runs in browsers, with a <code>tsconfig.json</code> that has the DOM and no types of Node. It imports what the pages share from <code>@payhooks/pages/browser</code>. A type that both sides speak, such as a part of the dashboard that has changed, is a file that both import.</p><p><strong>How they become a text.</strong> A module <code>*.script.ts</code> exports one function for each script: <code>browserScript(new URL(&quot;../browser/…&quot;))</code>, which bundles with esbuild. From the sources, it runs when a browser asks for the script. The build (<code>tsup.base.ts</code>) runs each such module, and puts the texts in its place. So there is one bundler with one set of options, and nothing of it is published: esbuild is a dependency of the private package only.</p><p><strong>What else was possible.</strong></p><ul><li><em>A generated file in git.</em> It makes every change twice as large in review, and somebody has to check that it is up to date.</li><li><em>A generated file outside of git.</em> Then the tests need a build, and see a stale one.</li><li><em>Functions as text</em>, <code>String(main)</code>. What runs is what the last tool has made of the function: tsx and coverage put calls into it that no browser knows, and so may the bundler of a merchant.</li><li><em>Files that the page reads from the package.</em> A merchant&#39;s bundler does not take them along.</li><li><em>JavaScript with types in comments.</em> It needs no bundler, but it has to be one file, and it is not the language of the project.</li></ul><p><strong>The price.</strong> The text that is published has no comments and is indented by esbuild. It is not minified, so that people can read what runs in their browser.</p></div>`);
}
const _sfc_setup = _sfc_main.setup;
_sfc_main.setup = (props, ctx) => {
  const ssrContext = useSSRContext();
  (ssrContext.modules || (ssrContext.modules = /* @__PURE__ */ new Set())).add("decisions/0026-scripts-of-the-pages.md");
  return _sfc_setup ? _sfc_setup(props, ctx) : void 0;
};
const _0026ScriptsOfThePages = /* @__PURE__ */ _export_sfc(_sfc_main, [["ssrRender", _sfc_ssrRender]]);
export {
  __pageData,
  _0026ScriptsOfThePages as default
};
