import { expect, test } from "vitest";
import { pageFiles } from "../../../../src/cli/ui/page-files.ts";

const MOST_BYTES = 300_000;

test("is a page of under 300 kB in all, which loads nothing from elsewhere", async () => {
  const files = [...(await pageFiles())];
  expect(files.map(([path]) => path)).toEqual(["/", "/assets/icon.svg", "/assets/page.css", "/assets/page.js"]);
  expect(files.reduce((bytes, [, { content }]) => bytes + Buffer.byteLength(content), 0)).toBeLessThan(MOST_BYTES);
  const html = files[0]?.[1].content ?? "";
  expect([...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address)).toEqual([
    "/assets/icon.svg",
    "/assets/page.css",
    "/assets/page.js",
  ]);
});
