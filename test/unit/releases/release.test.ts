import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { cutChangelog, newestRelease, releaseNotes } from "../../../scripts/release/changelog.ts";
import { ROOT } from "../../support/legation/cli.ts";
import { lastRelease } from "../../support/releases/last-release.ts";

const read = (...path: string[]): string => readFileSync(join(...path), "utf8");

describe("a release", () => {
  const released = lastRelease();
  const { version } = JSON.parse(read(ROOT, "package.json"));

  test("has one version in the package, the changelog, the manifests and the kept package", () => {
    expect(released.version).toBe(version);
    expect(JSON.parse(read(released.folder, "package.json")).version).toBe(version);
    expect(newestRelease(read(ROOT, "CHANGELOG.md"))).toBe(version);
    const images = ["controller.yaml", "webhook.yaml", "access/deployment.yaml", "ui/deployment.yaml"].flatMap((file) =>
      [...read(ROOT, "manifests", file).matchAll(/^\s+image: \S+:(\S+)$/gm)].map(([, tag]) => tag),
    );
    expect(images).toEqual([version, version, version, version]);
  });

  test("contains a program with manifests, and no sources", () => {
    expect(read(released.main)).toMatch(/^#!/);
    expect(readdirSync(released.folder).sort()).toEqual(["LICENSE", "README.md", "dist", "manifests", "package.json"]);
  });
});

describe("the release of the changelog", () => {
  const text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- This.\n\n## [0.1.0] - 2026-01-01\n\n- That.\n";

  test("gives unreleased entries a version and a date", () => {
    expect(cutChangelog(text, "0.2.0", "2026-02-02")).toBe(
      "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-02\n\n### Added\n\n- This.\n\n## [0.1.0] - 2026-01-01\n\n- That.\n",
    );
    expect(newestRelease(cutChangelog(text, "0.2.0", "2026-02-02"))).toBe("0.2.0");
  });

  test("is its own entries, and those of no other version, as notes", () => {
    const cut = cutChangelog(text, "0.2.0", "2026-02-02");
    expect(releaseNotes(cut, "0.2.0")).toBe("### Added\n\n- This.\n");
    expect(releaseNotes(cut, "0.1.0")).toBe("- That.\n");
    expect(() => releaseNotes(text, "0.2.0")).toThrow("CHANGELOG.md has no changes of 0.2.0");
  });

  test("has notes for the version of package.json", () => {
    const { version } = JSON.parse(read(ROOT, "package.json"));
    expect(releaseNotes(read(ROOT, "CHANGELOG.md"), version)).not.toContain("## [");
  });

  test.each([
    ["there is no chapter of it", "# Changelog\n", "has no line"],
    ["nothing is in it", "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- That.\n", "nothing is unreleased"],
  ])("is refused when %s", (_case, unready, message) => {
    expect(() => cutChangelog(unready, "0.2.0", "2026-02-02")).toThrow(message);
  });
});
