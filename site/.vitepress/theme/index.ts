import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { defineComponent, h, onMounted, ref } from "vue";

/** A picture that mermaid draws in the browser. Without JavaScript its text is shown. */
const Mermaid = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const text = decodeURIComponent(code);
    const picture = ref<string | null>(null);
    onMounted(async () => {
      const { default: mermaid } = await import("mermaid");
      const theme = document.documentElement.classList.contains("dark") ? "dark" : "default";
      mermaid.initialize({ startOnLoad: false, theme });
      const id = `mermaid-${Math.random().toString(36).slice(2)}`;
      picture.value = (await mermaid.render(id, text)).svg;
    });
    return () => (picture.value === null ? h("pre", text) : h("div", { innerHTML: picture.value }));
  },
});

const theme: Theme = {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("Mermaid", Mermaid);
  },
};

export default theme;
