import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { commandProblems } from "./documents/command-line.ts";
import { fileTableProblems } from "./documents/file-tables.ts";
import { keyProblems } from "./documents/keys.ts";
import { problemsOf } from "./documents/links.ts";
import { differences, marksOf } from "./documents/marks.ts";
import { nameProblems, wordsOf } from "./documents/names.ts";
import { TESTED_PAGES } from "./documents/tested-pages.ts";
import { readOptions } from "./options.ts";
import { documentedKeys } from "./reference/keys.ts";
import { loadedProgram } from "./reference/program.ts";

readOptions(
  `Checks documents and examples: links, names of source files and tables of files lead somewhere, names of functions and types on pages about
the code are in the sources, and Legation has all its commands, flags, labels and annotations that they name.

  node scripts/check-documents.ts`,
  {},
);
const root = fileURLToPath(new URL("..", import.meta.url));
const ignored = ["node_modules", "**/node_modules", ".git", "dist", "coverage", "site/.vitepress/{dist,cache,.temp}"];
const files = globSync("**/*", { cwd: root, exclude: ignored });
const read = (file: string): string => readFileSync(root + file, "utf8");
const program = await loadedProgram();
const keys = new Set(documentedKeys().map(({ key }) => key));
const pages = files.filter((file) => file.endsWith(".md"));
const sources = files.filter(
  (file) => /\.(?:ts|tsx|js|json|yaml|sh|go|py)$/.test(file) && !file.endsWith("-lock.json"),
);
const words = wordsOf([...sources, ".ci/run", "Dockerfile"].map(read));
const examples = globSync("examples/**/*.*", { cwd: root });
const marks = pages.map((file) => ({ file, ...marksOf(file, read(file)) }));
const sum = (count: (page: (typeof marks)[number]) => number): number =>
  marks.reduce((total, page) => total + count(page), 0);
const withRuns = marks.filter(({ run }) => run > 0).map(({ file }) => file);
console.log(
  `blocks of commands: ${sum(({ run }) => run)} on ${withRuns.length} pages are run by tests, ${sum(({ elsewhere }) => elsewhere)} elsewhere`,
);
const problems = [
  ...marks.flatMap((page) => page.problems),
  ...differences(withRuns, TESTED_PAGES),
  ...problemsOf(files, read),
  ...pages.flatMap((file) => fileTableProblems(file, read(file), files)),
  ...pages.flatMap((file) => nameProblems(file, read(file), words)),
  ...pages.flatMap((file) => commandProblems(file, read(file), program)),
  ...examples.flatMap((file) => commandProblems(file, `\`\`\`sh\n${read(file)}\n\`\`\`\n`, program)),
  ...[...pages, ...examples].flatMap((file) => keyProblems(file, read(file), keys)),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
