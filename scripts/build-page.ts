import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

// Bundles the script of `legation ui`: into the package with `--dist`, else to standard output.
const page = join(import.meta.dirname, "..", "src", "cli", "ui", "page");
const dist = join(import.meta.dirname, "..", "dist", "src", "cli", "ui", "page");

const build = await rolldown({ input: join(page, "main.tsx"), platform: "browser" });
const { output } = await build.generate({ format: "esm", minify: true });
await build.close();
const [{ code }] = output;
if (process.argv.includes("--dist")) {
  mkdirSync(dist, { recursive: true });
  writeFileSync(join(dist, "page.js"), code);
  copyFileSync(join(page, "page.css"), join(dist, "page.css"));
} else {
  process.stdout.write(code);
}
