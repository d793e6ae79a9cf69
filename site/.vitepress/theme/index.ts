import { type Theme, useData } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { defineComponent, h, nextTick, onMounted, ref, watch } from "vue";
import "./style.css";

/** Distances in pictures. The closer their parts are, the larger is their text on the page. */
const CLOSE = { nodeSpacing: 24, rankSpacing: 28, padding: 8 };

/** A picture that mermaid draws in the browser, anew if the reader turns the page dark or light. Without JavaScript its text is shown. */
const Mermaid = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const text = decodeURIComponent(code);
    const picture = ref<string | null>(null);
    const frame = ref<HTMLElement | null>(null);
    const { isDark } = useData();
    const draw = async (): Promise<void> => {
      const { default: mermaid } = await import("mermaid");
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "default", flowchart: CLOSE });
      const id = `mermaid-${Math.random().toString(36).slice(2)}`;
      picture.value = (await mermaid.render(id, text)).svg;
      await nextTick();
      // On a phone, the middle of a picture has more in it than its left edge.
      const { scrollWidth = 0, clientWidth = 0 } = frame.value ?? {};
      frame.value?.scrollTo({ left: (scrollWidth - clientWidth) / 2 });
    };
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      picture.value === null
        ? h("pre", text)
        : h("div", { ref: frame, class: "picture", innerHTML: picture.value });
  },
});

const theme: Theme = {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("Mermaid", Mermaid);
  },
};

export default theme;
