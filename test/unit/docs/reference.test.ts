import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CUSTOM_RESOURCE_PAGES } from "../../../scripts/reference/custom-resources.ts";
import { documentedKeys, keysPage } from "../../../scripts/reference/keys.ts";
import { plain, table } from "../../../scripts/reference/markdown.ts";
import { metricsPage } from "../../../scripts/reference/metrics.ts";
import { AUTHOR_KEYS } from "../../../src/api/annotations.ts";

const docs = join(import.meta.dirname, "..", "..", "..", "docs");

describe("the page of keys", () => {
  test("has every annotation of authors among the keys that they write", () => {
    const [, written = ""] = /^## Keys that you write$([\s\S]*?)^## /m.exec(keysPage()) ?? [];
    expect(AUTHOR_KEYS.filter((key) => !written.includes(`\`${key}\``))).toEqual([]);
  });

  test("refuses a key without a comment, and one of no kind", () => {
    expect(() => documentedKeys('\nexport const NEW_LABEL = "legation.dev/new";')).toThrow(
      "src/api/keys.ts: NEW_LABEL: has no comment",
    );
    expect(() => documentedKeys('/** New. */\nexport const NEW = "legation.dev/new";')).toThrow(
      "src/api/keys.ts: NEW: ends with none of ANNOTATION, LABEL",
    );
  });
});

test("annotations.md mentions every annotation of authors", () => {
  const text = readFileSync(join(docs, "annotations.md"), "utf8");
  expect(
    AUTHOR_KEYS.filter((key) => !text.includes(`\`${key.slice("legation.dev/".length)}`) && !text.includes(key)),
  ).toEqual([]);
});

test("shows type, default, bounds and meaning of a field", () => {
  const page = CUSTOM_RESOURCE_PAGES["cluster.md"]?.() ?? "";
  expect(page).toContain("| `probe.periodSeconds` | integer | `10` | 1 to 300 | Seconds between probes. |");
  expect(page).toContain("| `credentialsSecret` | object | required |");
});

test("shows type and labels of a metric", async () => {
  expect(await metricsPage()).toMatch(
    /^\| `legation_api_requests_total` \| counter \| `cluster`, `verb`, `resource`, `code` \| /m,
  );
});

test("keeps `|` and `<` of a cell from becoming Markdown", () => {
  expect(table(["a"], [["`x | y`"]])).toBe("| a |\n| --- |\n| `x \\| y` |\n");
  expect(plain("<name> as `<name>`")).toBe("\\<name\\> as `<name>`");
});
