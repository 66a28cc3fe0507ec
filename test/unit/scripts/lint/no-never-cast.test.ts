import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../../../src/cli/shared/package-root.ts";

const root = packageRoot();
const RULE = "scripts/lint/no-never-cast.grit";
const SOURCE = [
  "export const cast = { a: 1 } as never;",
  "export const inside = take({ a: 1 } as never, 2);",
  "export const twice = take as never as string;",
  'export const text = "as never";',
  "export const none: never[] = [];",
  "export const other = take as unknown;",
];

test("the linter refuses each cast to never, and nothing else that says never", () => {
  const folder = mkdtempSync(join(tmpdir(), "lint-"));
  try {
    cpSync(join(root, RULE), join(folder, RULE), { recursive: true });
    writeFileSync(
      join(folder, "biome.json"),
      JSON.stringify({ plugins: [`./${RULE}`], linter: { rules: { preset: "none" } } }),
    );
    writeFileSync(join(folder, "casts.ts"), SOURCE.join("\n"));
    const biome = join(root, "node_modules/.bin/biome");
    const { stdout } = spawnSync(biome, ["lint", "--reporter=github", "."], { cwd: folder, encoding: "utf8" });
    expect([...stdout.matchAll(/^::error .*?line=(\d+),.*No cast to never/gm)].map(([, line]) => line)).toEqual([
      "1",
      "2",
      "3",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
