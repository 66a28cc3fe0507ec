import { expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { ContentDigests } from "../../../../src/controllers/copying/digests.ts";
import { DEPENDENCIES, type DependencyObject } from "../../../../src/copies/dependencies.ts";
import { HOST } from "../../../support/builders/claim.ts";

function settings(data: Record<string, string>, binaryData: Record<string, string> = {}): Stored<DependencyObject> {
  return { metadata: { name: "settings", uid: "uid-1", resourceVersion: "1" }, data, binaryData };
}

const digests = new ContentDigests<DependencyObject>(new Map(Object.entries(DEPENDENCIES)), HOST);

test("has equal digests for the same content in any order, and others for other content", () => {
  const copy = digests.storedCopy("ConfigMap", settings({ a: "1", b: "2" }));
  const isSame = (source: Stored<DependencyObject>): boolean => digests.isSame("ConfigMap", copy, source);
  expect(isSame(settings({ a: "1", b: "2" }))).toBe(true);
  expect(isSame(settings({ b: "2", a: "1" }))).toBe(true);
  expect(isSame(settings({ a: "2", b: "1" }))).toBe(false);
  expect(isSame(settings({ a: "1", b: "2" }, { c: "Mw==" }))).toBe(false);
});

test("stores no content of a copy", () => {
  const stored = digests.storedCopy("ConfigMap", settings({ a: "secret words" }, { b: "c2VjcmV0" }));
  expect(JSON.stringify(stored)).not.toMatch(/secret words|c2VjcmV0/);
});
