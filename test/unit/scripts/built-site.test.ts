import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { completeSite } from "../../../scripts/documents/built-site.ts";

let site: string;
let repository: string;

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function problemsOf(page: string): string[] {
  write(join(site, "docs/page.html"), page);
  return completeSite(site, repository);
}

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), "legation-site-"));
  site = join(folder, "site");
  repository = join(folder, "repository");
  write(join(site, "docs/other.html"), '<h2 id="here">Here</h2>');
  write(join(repository, "examples/pod.yaml"), "kind: Pod\n");
});

afterEach(() => {
  rmSync(dirname(site), { recursive: true });
});

test.each([
  ["a page", '<a href="./other.html">'],
  ["a heading", '<a href="/docs/other.html#here">'],
  ["a heading of its own", '<a href="#there"><h2 id="there">'],
  ["another site", '<a class="x" href="https://kubernetes.io">'],
  ["an image in the page", '<img src="data:image/png;base64,AA==">'],
])("accepts a link to %s", (_, page) => {
  expect(problemsOf(page)).toEqual([]);
});

test.each([
  ['<a href="./gone.html">', "docs/page.html: ./gone.html leads to no file"],
  ['<a href="./other.html#gone">', "docs/page.html: ./other.html#gone leads to no heading"],
  ['<script src="https://cdn.example/x.js">', "docs/page.html: loads https://cdn.example/x.js"],
  ['<link rel="stylesheet" href="//cdn.example/x.css">', "docs/page.html: loads //cdn.example/x.css"],
])("refuses a page with %s", (page, problem) => {
  expect(problemsOf(page)).toEqual([problem]);
});

test("copies files of the repository to which pages link, and lists folders", () => {
  expect(problemsOf('<a href="../examples/index.html">')).toEqual([]);
  expect(readFileSync(join(site, "examples/index.html"), "utf8")).toContain('<a href="pod.yaml">pod.yaml</a>');
  expect(existsSync(join(site, "examples/pod.yaml"))).toBe(true);
});

test("refuses a site without pages", () => {
  expect(completeSite(join(site, "gone"), repository)).toEqual([`${join(site, "gone")} has no pages`]);
});
