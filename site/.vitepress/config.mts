import { defineConfig } from "vitepress";
import { sections, writeContent } from "../content.mjs";
import { processTerm } from "../search.mjs";

writeContent();

/** The anchor that GitHub gives a heading, so that links work there and here. */
const slugify = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");

const address = (place: string): string => `/${place.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`;

export default defineConfig({
  title: "Payhooks",
  description: "Receive payment callbacks and connected-account webhooks without losing or repeating one",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/favicon.svg" }]],
  srcDir: "content",
  outDir: "dist",
  cleanUrls: false,
  markdown: {
    // What looks like a tag is text, as in `<secret>`.
    html: false,
    anchor: { slugify },
    config(md) {
      // The one tag that pages have: the end of a line in a cell of a table.
      md.inline.ruler.before("link", "line-end", (state, isSilent) => {
        if (!state.src.startsWith("<br>", state.pos)) return false;
        if (!isSilent) state.push("hardbreak", "br", 0);
        state.pos += "<br>".length;
        return true;
      });
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, at, ...rest) => {
        const token = tokens[at];
        if (token?.info.trim() === "mermaid")
          return `<Mermaid code="${encodeURIComponent(token.content)}" />`;
        return fence?.(tokens, at, ...rest) ?? "";
      };
    },
  },
  themeConfig: {
    search: { provider: "local", options: { miniSearch: { options: { processTerm } } } },
    outline: [2, 3],
    nav: [
      { text: "Contents", link: "/contents" },
      { text: "Questions", link: "/questions" },
      { text: "Options", link: "/reference/options" },
      { text: "Errors", link: "/reference/errors" },
    ],
    sidebar: sections().map(({ heading, pages }) => ({
      text: heading,
      items: pages.map(({ title, place }) => ({ text: title, link: address(place) })),
    })),
  },
});
