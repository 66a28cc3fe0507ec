import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { problemsOf } from "./documents/links.ts";
import { readOptions } from "./options.ts";

readOptions(
  "Checks that links and names of source files in documents lead somewhere.\n\n  node scripts/check-documents.ts",
  {},
);
const root = fileURLToPath(new URL("..", import.meta.url));
const files = globSync("**/*", { cwd: root, exclude: ["node_modules", ".git", "dist", "coverage"] });
const problems = problemsOf(files, (file) => readFileSync(root + file, "utf8"));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
