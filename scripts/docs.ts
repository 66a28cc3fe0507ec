import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { completeSite } from "./documents/built-site.ts";
import { installSitePackages } from "./documents/site-packages.ts";
import { readOptions } from "./options.ts";

const USAGE = `The documentation as a site: https://vitepress.dev over the pages in docs/, with local search. The first time its packages are
installed into site/node_modules (300 MB); after that no network is needed.

  npm run docs               builds it into site/.vitepress/dist; fails on a dead link and on an asset from elsewhere
  npm run docs:dev           serves it on 127.0.0.1, and shows each change at once
  npm run docs -- --install  only installs its packages`;

const { values } = readOptions(USAGE, {
  serve: { type: "boolean", default: false },
  install: { type: "boolean", default: false },
});
const root = fileURLToPath(new URL("..", import.meta.url));
const site = `${root}site`;

/** Returns the problems of the site, which is built. */
function build(): readonly string[] {
  const status = runVitePress("build");
  return status === 0 ? completeSite(`${site}/.vitepress/dist`, root) : [`VitePress ended with ${status}`];
}

function runVitePress(command: string, ...args: readonly string[]): number {
  const file = `${site}/node_modules/vitepress/bin/vitepress.js`;
  const { status, error } = spawnSync(process.execPath, [file, command, ".", ...args], { cwd: site, stdio: "inherit" });
  if (error !== undefined) throw error;
  return status ?? 1;
}

const failure = await installSitePackages(site);
if (failure !== undefined) {
  console.error(failure);
  process.exitCode = 1;
} else if (values.serve) {
  process.exitCode = runVitePress("dev", "--host", "127.0.0.1");
} else if (!values.install) {
  const problems = build();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  else
    console.log(
      "the site is in site/.vitepress/dist: every link leads somewhere, and nothing is loaded from elsewhere",
    );
}
