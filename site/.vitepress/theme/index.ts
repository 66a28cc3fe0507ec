import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme";
import MermaidDiagram from "./mermaid-diagram.vue";

const theme: Theme = {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    app.component("MermaidDiagram", MermaidDiagram);
  },
};
export default theme;
