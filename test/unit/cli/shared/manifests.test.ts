import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadManifests, parseManifests } from "../../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../../src/cli/shared/package-root.ts";

describe("manifest files", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "manifests-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test("reads the listed files and folders in order, and no others", async () => {
    await mkdir(join(folder, "crds"));
    await writeFile(join(folder, "kustomization.yaml"), "resources:\n  - crds\n  - b.yaml\n");
    await writeFile(join(folder, "crds", "kustomization.yaml"), "resources: [a.yaml]\n");
    await writeFile(join(folder, "crds", "a.yaml"), "{apiVersion: v1, kind: A, metadata: {name: a}}");
    await writeFile(
      join(folder, "b.yaml"),
      "apiVersion: v1\nkind: B\nmetadata: {name: b}\n---\n---\napiVersion: v1\nkind: C\nmetadata: {name: c}\n",
    );
    await writeFile(join(folder, "unlisted.yaml"), "not: a manifest");
    expect((await loadManifests(folder)).map(({ kind }) => kind)).toEqual(["A", "B", "C"]);
  });

  test("refuses a kustomization that does more than list resources", async () => {
    await writeFile(join(folder, "kustomization.yaml"), "resources: []\nnamePrefix: x-\n");
    await expect(loadManifests(folder)).rejects.toThrow(/namePrefix/);
  });

  test.each([
    ["kind: A\nmetadata: {name: a}", /apiVersion/],
    ["apiVersion: v1\nkind: A\nmetadata: {}", /name/],
    ["apiVersion: [", /x\.yaml/],
  ])("refuses %j with the file's name", (text, message) => {
    expect(() => parseManifests(text, "x.yaml")).toThrow(message);
  });
});

test("finds the manifests in the package's root", () => {
  expect(join(packageRoot(), "src", "cli", "shared", "manifests.ts")).toBe(
    join(import.meta.dirname, "..", "..", "..", "..", "src", "cli", "shared", "manifests.ts"),
  );
});
