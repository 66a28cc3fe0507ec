import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";

// Bundles the script of `legation ui`: into the built package in the folder `--dist`, else to standard output.
const page = join(import.meta.dirname, "..", "src", "cli", "ui", "page");
const { dist } = parseArgs({ options: { dist: { type: "string" } } }).values;

const build = await rolldown({ input: join(page, "main.tsx"), platform: "browser" });
const { output } = await build.generate({ format: "esm", minify: true });
await build.close();
const [{ code }] = output;
if (dist !== undefined) {
  const folder = join(dist, "src", "cli", "ui", "page");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "page.js"), code);
  copyFileSync(join(page, "page.css"), join(folder, "page.css"));
} else {
  process.stdout.write(code);
}
