import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../shared/failure.ts";

/** A file that the page loads. */
export interface PageFile {
  readonly type: string;
  readonly content: string;
}

const INDEX = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Legation</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
<script type="module" src="/assets/page.js"></script>
</head>
<body><div id="page"></div><noscript>This page needs JavaScript.</noscript></body>
</html>
`;

// Two clusters and the way between them.
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2563eb"/><path d="M9 22V10m0 12h8" stroke="#fff" stroke-width="3.4" stroke-linecap="round" stroke-linejoin="round" fill="none"/><circle cx="23" cy="11" r="3.6" fill="#93c5fd"/><path d="M9 16c7 0 8-5 11-5" stroke="#93c5fd" stroke-width="2.4" fill="none"/></svg>`;

/** Returns the page's files by path. The script is built by `npm run build`, or now in a clone. */
export async function pageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const folder = join(import.meta.dirname, "page");
  return new Map([
    ["/", { type: "text/html; charset=utf-8", content: INDEX }],
    ["/assets/icon.svg", { type: "image/svg+xml", content: ICON }],
    [
      "/assets/page.css",
      { type: "text/css; charset=utf-8", content: await readFile(join(folder, "page.css"), "utf8") },
    ],
    ["/assets/page.js", { type: "text/javascript; charset=utf-8", content: await script(folder) }],
  ]);
}

async function script(folder: string): Promise<string> {
  const built = join(folder, "page.js");
  if (existsSync(built)) return await readFile(built, "utf8");
  const source = join(folder, "main.tsx");
  if (existsSync(source)) return await bundle(source);
  throw new Failure("failure", {
    object: built,
    problem: "is missing",
    remedy: "install the package again: the page's script is part of it",
  });
}

/** Bundles the page's script from its sources. The bundler is a development dependency. */
export async function bundle(source: string): Promise<string> {
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    input: source,
    platform: "browser",
    transform: { jsx: { runtime: "automatic", importSource: "preact" } },
  });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  return output[0].code;
}
