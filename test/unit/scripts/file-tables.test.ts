import { expect, test } from "vitest";
import { fileTableProblems } from "../../../scripts/documents/file-tables.ts";

const FILES = ["src/a", "src/a/one.ts", "src/a/two.ts", "src/a/inner", "src/a/inner/deep.ts", "src/b", "src/b/one.ts"];

const problemsOf = (heading: string, ...rows: readonly string[]): string[] =>
  fileTableProblems("page.md", `| ${heading} | does |\n| --- | --- |\n${rows.join("\n")}\n`, FILES);

test.each<[string, string, readonly string[]]>([
  [
    "names files by path, by their end, and beside each other",
    "file",
    ["| `src/a/one.ts`, `two.ts` |", "| `a/inner/` |"],
  ],
  [
    "lists a folder whole",
    "all of `src/a`",
    ["| `one.ts`, `two.ts` | x |", "| `inner/` | x |", "| `src/b/one.ts` | x |"],
  ],
  ["names a file that is gone in another column", "file", ["| `src/a/one.ts` | was `gone.ts` |"]],
  ["is of something else", "event", ["| `gone` | x |"]],
])("accepts a table that %s", (_, heading, rows) => {
  expect(problemsOf(heading, ...rows)).toEqual([]);
});

test.each<[string, string, readonly string[], readonly string[]]>([
  ["a file that is gone", "file or folder", ["| `src/a/gone.ts` | x |"], ["names `src/a/gone.ts`"]],
  ["a file that is in another folder", "file", ["| `src/b/one.ts`, `two.ts` | x |"], ["names `two.ts`"]],
  ["a folder that is gone", "file", ["| `a/gone/` | x |"], ["names `a/gone`"]],
  ["an incomplete list", "all of `src/a`", ["| `one.ts` | x |"], ["lacks `two.ts`", "lacks `inner`"]],
])("finds in a table %s", (_, heading, rows, expected) => {
  const problems = problemsOf(heading, ...rows);
  expect(problems).toHaveLength(expected.length);
  for (const [index, text] of expected.entries()) expect(problems[index]).toContain(text);
});
