import { describe, expect, test } from "vitest";
import { commandProblems } from "../../../scripts/documents/command-line.ts";
import { keyProblems } from "../../../scripts/documents/keys.ts";
import { blocksOf, commandLines } from "../../../scripts/documents/shell-lines.ts";
import { loadedProgram } from "../../../scripts/reference/program.ts";

const program = await loadedProgram();
const inBlock = (line: string): string => `# A page\n\n\`\`\`sh\n${line}\n\`\`\`\n`;

describe("a document may show", () => {
  test.each([
    ["a command with its flags", "legation join west --member-kubeconfig f --labels region=eu"],
    ["flags of every command", "legation -o json status --verbose"],
    ["the help of a command", "legation join --help"],
    ["a command of the clone, with a variable", "LEGATION_CONTEXT=a bin/legation status"],
    ["the plugin of kubectl", "kubectl legation status"],
    ["flags of another program behind a pipe", "legation status -o json | jq --raw-output ."],
    ["flags of another program", "docker build --tag legation ."],
    ["a comment", "# legation nonsense --nonsense"],
    ["a placeholder for a command", "legation COMMAND --help"],
    ["a command over two lines", "legation join west \\\n  --member-kubeconfig f"],
  ])("%s", (_, line) => {
    expect(commandProblems("docs/page.md", inBlock(line), program)).toEqual([]);
  });
});

test.each([
  ["legation nonsense", "legation has no command nonsense"],
  ["legation status --nonsense", "status has no flag --nonsense"],
  ["legation status -x", "status has no flag -x"],
  ["legation join west \\\n  --member-kubeconf f", "join has no flag --member-kubeconf"],
  ["kubectl get pods; legation statu", "legation has no command statu"],
  ['test "$(legation status --nonsense)"', "status has no flag --nonsense"],
])("names what is wrong with `%s`", (line, problem) => {
  expect(commandProblems("docs/page.md", inBlock(line), program)).toEqual([
    `docs/page.md: \`${line.replaceAll(/\\\n\s*/g, " ")}\`: ${problem}`,
  ]);
});

test("reads commands within the text, too", () => {
  const text = "Run `legation\nstatus --nonsense`, or `kubectl get --raw /`.";
  expect(commandProblems("docs/page.md", text, program)).toEqual([
    "docs/page.md: `legation status --nonsense`: status has no flag --nonsense",
  ]);
});

test("names keys that Legation does not know, once each", () => {
  const known = new Set(["legation.dev/clusters"]);
  const text =
    "legation.dev/clusters, legation.dev/clustres: legation.dev/clustres, legation.dev/clusters- legation.dev/v1alpha1";
  expect(keyProblems("a.yaml", text, known)).toEqual(["a.yaml: Legation has no key legation.dev/clustres"]);
  expect(keyProblems("a.yaml", "clusters.legation.dev/west example.legation.dev/x", known)).toEqual([]);
});

test("finds blocks with language, mark, line and text without indentation", () => {
  expect(blocksOf("a\n\n1. b\n\n   ```sh run\n   one\n     two\n   ```\n")).toEqual([
    { language: "sh", mark: "run", text: "one\n  two\n", line: 5 },
  ]);
  expect(commandLines("$ one # a comment\n# two\nthree '#4'\n")).toEqual(["one", "three '#4'"]);
});
