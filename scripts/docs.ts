import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { completeSite } from "./documents/built-site.ts";
import { readOptions } from "./options.ts";

const USAGE = `The documentation as a site: https://vitepress.dev over the pages in docs/, with local search.

  npm run docs       builds it into site/.vitepress/dist; fails on a dead link and on an asset from elsewhere
  npm run docs:dev   serves it on 127.0.0.1, and shows each change at once`;

const { values } = readOptions(USAGE, { serve: { type: "boolean", default: false } });
const root = fileURLToPath(new URL("..", import.meta.url));
const site = `${root}site`;

function run(file: string, args: readonly string[]): void {
  const { status, error } = spawnSync(file, args, { cwd: site, stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Installs the site's own packages where they are not those of its lock file. */
function install(): void {
  const installed = `${site}/node_modules/.installed`;
  const lock = readFileSync(`${site}/package-lock.json`, "utf8");
  if (existsSync(installed) && readFileSync(installed, "utf8") === lock) return;
  console.log("installing VitePress and Mermaid into site/node_modules (300 MB)");
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  writeFileSync(installed, lock);
}

install();
const vitepress = [`${site}/node_modules/vitepress/bin/vitepress.js`];
if (values.serve) run(process.execPath, [...vitepress, "dev", ".", "--host", "127.0.0.1"]);
else {
  run(process.execPath, [...vitepress, "build", "."]);
  const problems = completeSite(`${site}/.vitepress/dist`, root);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  else
    console.log(
      "the site is in site/.vitepress/dist: every link leads somewhere, and nothing is loaded from elsewhere",
    );
}
