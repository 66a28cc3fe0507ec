import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../shared/package-root.ts";

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

/** Returns the page's files by path. A package has the script, and a clone builds it now. */
export async function pageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const root = packageRoot();
  const builder = join(root, "scripts", "build-page.ts");
  const isClone = existsSync(builder);
  const folder = join(root, ...(isClone ? [] : ["dist"]), "src", "cli", "ui", "page");
  const [style, script] = await Promise.all([
    readFile(join(folder, "page.css"), "utf8"),
    isClone ? built(builder) : readFile(join(folder, "page.js"), "utf8"),
  ]);
  return new Map([
    ["/", { type: "text/html; charset=utf-8", content: INDEX }],
    ["/assets/icon.svg", { type: "image/svg+xml", content: ICON }],
    ["/assets/page.css", { type: "text/css; charset=utf-8", content: style }],
    ["/assets/page.js", { type: "text/javascript; charset=utf-8", content: script }],
  ]);
}

const MOST_SCRIPT_BYTES = 2 ** 24;

async function built(builder: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [builder], { maxBuffer: MOST_SCRIPT_BYTES });
  return stdout;
}
