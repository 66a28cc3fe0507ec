import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { NAMES_OF_OTHERS, nameProblems, namesIn, wordsOf } from "../../../scripts/documents/names.ts";

const WORDS = wordsOf([
  'import { one } from "./one.ts"; // gone\n/** Also `gone`. */\nclass Member { get lost() { return "a reason"; } }',
  "data:\n  scheduleTimeoutSeconds: 30\n",
]);

describe("a page about the code may name", () => {
  test.each([
    ["a function", "`one`"],
    ["a function with its arguments", "`one(first, second)`"],
    ["a field of a type", "`Member.lost`"],
    ["a field of a manifest", "`scheduleTimeoutSeconds`"],
    ["a name of Kubernetes that is known here", "`nodeFit`"],
    ["what is no name: a command, a path, a key", "`kubectl get pods`, `src/gone.ts`, `legation.dev/gone`"],
    ["anything in a block", "```ts\ngone();\n```"],
  ])("%s", (_, text) => {
    expect(nameProblems("docs/architecture.md", text, WORDS)).toEqual([]);
  });
});

test.each([
  ["a name that only comments have", "`gone`", "gone"],
  ["a field that is gone", "`Member.gone()`", "gone"],
  ["a private field that is gone", "`#gone`", "gone"],
])("finds %s", (_, text, name) => {
  expect(nameProblems("docs/decisions/a.md", `${text} and ${text}`, WORDS)).toEqual([
    `docs/decisions/a.md: no source has the name \`${name}\``,
  ]);
});

test("leaves pages for users alone, which name what other programs have", () => {
  expect(nameProblems("docs/engines.md", "`retryStrategy`", WORDS)).toEqual([]);
});

test("has no name of others that no page names", () => {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const pages = globSync(["*.md", "docs/**/*.md", "src/**/*.md"], { cwd: root });
  const named = new Set(pages.flatMap((page) => namesIn(page, readFileSync(root + page, "utf8"))));
  expect([...NAMES_OF_OTHERS].filter((name) => !named.has(name))).toEqual([]);
});
