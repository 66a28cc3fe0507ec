import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { expectFiles, fileCame, noneToCome } from "../../support/harness/files-to-come.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "legation-turns-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

test("needs clusters until the last file for them has got its set, whatever others wait for", () => {
  const turns = folder();
  expectFiles(turns, "simulated", ["/test/integration/a.test.ts", "/test/integration/b.test.ts"]);
  expectFiles(turns, "real", ["/test/integration/real-nodes/a.test.ts"]);
  fileCame(turns, "simulated", "/test/integration/a.test.ts");
  expect(noneToCome(turns, "simulated")).toBe(false);
  fileCame(turns, "simulated", "/test/integration/b.test.ts");
  expect(noneToCome(turns, "simulated")).toBe(true);
  expect(noneToCome(turns, "real")).toBe(false);
});

test("always needs clusters if the coming files are unknown", () => {
  const turns = folder();
  fileCame(turns, "simulated", "/test/integration/a.test.ts");
  expect(noneToCome(turns, "simulated")).toBe(false);
});
