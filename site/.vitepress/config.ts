import { existsSync, statSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type MarkdownRenderer, type UserConfig } from "vitepress";
import { anchorsOf } from "../../scripts/documents/links.ts";
import { SIDEBAR } from "./sidebar.ts";

type PluginOption = NonNullable<NonNullable<UserConfig["vite"]>["plugins"]>[number];

const root = fileURLToPath(new URL("../..", import.meta.url));
const site = `${root}site/`;

/** Returns a heading's anchor as GitHub makes it. */
function slugify(heading: string): string {
  const [anchor = ""] = anchorsOf(`# ${heading}\n`);
  return anchor;
}

/** Draws fenced blocks of the language `mermaid`, which GitHub draws by itself. */
function drawMermaid(markdown: MarkdownRenderer): void {
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info.trim() !== "mermaid") return fence?.(tokens, index, ...rest) ?? "";
    return `<MermaidDiagram source="${encodeURIComponent(token.content)}" />`;
  };
}

/** Shows code spans as they are written: Vue would compute what is between two braces. */
function showBraces(markdown: MarkdownRenderer): void {
  const code = markdown.renderer.rules.code_inline;
  markdown.renderer.rules.code_inline = (...args) => (code?.(...args) ?? "").replace(/^<code/, "<code v-pre");
}

/** Opens links to files of the repository that are no pages, such as manifests; the build copies them. */
function openFiles(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("repository-files", ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href === null || /^(?:[a-z]+:|#|\/)/i.test(href)) continue;
      const [path = ""] = href.split("#");
      const file = posix.join(posix.dirname(env.relativePath), path);
      if (path.endsWith(".md") || !existsSync(root + file)) continue;
      const isFolder = statSync(root + file).isDirectory();
      token.attrSet("href", isFolder ? `${path.replace(/\/$/, "")}/index.html` : path);
      token.attrSet("target", "_blank");
    }
  });
}

/** Finds packages in site/node_modules for pages, which lie outside of it. */
const ownPackages: PluginOption = {
  name: "own-packages",
  enforce: "pre",
  resolveId(id, importer, options) {
    // The server's build renders all pages with the same Vue.
    if (options.ssr === true && /^vue(?:\/|$)/.test(id)) return { id, external: true };
    if (importer === undefined || importer.startsWith(site) || !/^@?[a-z]/.test(id)) return undefined;
    return this.resolve(id, `${site}index.md`, { ...options, skipSelf: true });
  },
};

export default defineConfig({
  title: "Legation",
  description: "Runs unchanged Kubernetes pods and workloads in other clusters",
  lang: "en",
  // The pages are those of the repository, where they are, so that GitHub shows them, too.
  srcDir: "..",
  srcExclude: ["**/node_modules/**", "test/**", "dist/**", "coverage/**", "scripts/**", ".ci/**"],
  rewrites: { "site/index.md": "index.md" },
  lastUpdated: false,
  // Mermaid is loaded by pages with drawings alone.
  vite: { plugins: [ownPackages], build: { chunkSizeWarningLimit: 3_000 } },
  markdown: {
    anchor: { slugify },
    languageAlias: { promql: "text" },
    config: (markdown) => {
      drawMermaid(markdown);
      showBraces(markdown);
      openFiles(markdown);
    },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: "deep",
    sidebar: SIDEBAR,
    nav: [
      { text: "How it works", link: "/docs/how-it-works" },
      { text: "Tasks", link: "/docs/tasks/README" },
      { text: "Install", link: "/docs/install" },
      { text: "Reference", link: "/docs/reference/commands" },
      { text: "Troubleshooting", link: "/docs/troubleshooting" },
    ],
    docFooter: { prev: "Before", next: "Next" },
  },
});
