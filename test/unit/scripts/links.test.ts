import { describe, expect, test } from "vitest";
import { anchorsOf, problemsOf } from "../../../scripts/documents/links.ts";

const FILES: Readonly<Record<string, string>> = {
  "README.md": "# Legation\n\n## Try it\n\n## Try it\n",
  "docs/page.md": "",
  "docs/picture.svg": "<svg/>",
  "src/pods/proxy.ts": "",
  docs: "",
};

function problems(page: string): string[] {
  return problemsOf(Object.keys(FILES), (file) => (file === "docs/page.md" ? page : (FILES[file] ?? "")));
}

describe("a document may", () => {
  test.each([
    ["link to a file", "[a](../README.md)"],
    ["link to a folder", "[a](../docs/)"],
    ["link to a heading", "[a](../README.md#try-it)"],
    ["link to the second of two equal headings", "[a](../README.md#try-it-1)"],
    ["link to a heading of its own", "# On `pods`\n[a](#on-pods)"],
    ["link with a text of two lines", "[a\nb](../README.md)"],
    ["link elsewhere", "[a](https://kubernetes.io/docs#x) [b](mailto:a@b)"],
    ["show a picture", '<img src="picture.svg">'],
    ["name a source file by its end", "`pods/proxy.ts` and `proxy.ts`"],
    ["show links in code", "`[a](gone.md)`\n\n```md\n[a](gone.md)\n```\n"],
  ])("%s", (_, page) => {
    expect(problems(page)).toEqual([]);
  });
});

test.each([
  ["[a](gone.md)", "docs/page.md: gone.md leads to no file"],
  ["[a `b`](README.md)", "docs/page.md: README.md leads to no file"],
  ["[a]: gone.md", "docs/page.md: gone.md leads to no file"],
  ['<img src="gone.svg">', "docs/page.md: gone.svg leads to no file"],
  ["[a](#gone)", "docs/page.md: #gone leads to no heading"],
  ["[a](../README.md#try-it-2)", "docs/page.md: ../README.md#try-it-2 leads to no heading"],
  ["`pods/gone.ts`", "docs/page.md: there is no file `pods/gone.ts`"],
])("names what is wrong with %s", (page, problem) => {
  expect(problems(page)).toEqual([problem]);
});

test.each([
  ["## Kubernetes' own suite", "kubernetes-own-suite"],
  ["### `legation plan -f FILE`", "legation-plan--f-file"],
  ["# The [write guard](a.md) & more", "the-write-guard--more"],
  ['<a name="here"></a>', "here"],
])("makes of %s the anchor %s", (text, anchor) => {
  expect([...anchorsOf(text)]).toEqual([anchor]);
});
