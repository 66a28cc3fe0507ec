import { expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { digested, withoutContent } from "../../../../src/controllers/dependencies/digest.ts";
import type { DependencyObject } from "../../../../src/copies/dependencies.ts";

function settings(data: Record<string, string>, binaryData: Record<string, string> = {}): Stored<DependencyObject> {
  return { metadata: { name: "settings", uid: "uid-1", resourceVersion: "1" }, data, binaryData };
}

test("the same content has the same digest, in whatever order it is written, and other content another", () => {
  const digestOf = (object: Stored<DependencyObject>): string => digested("ConfigMap", object).digest;
  const both = digestOf(settings({ a: "1", b: "2" }));
  expect(digestOf(settings({ b: "2", a: "1" }))).toBe(both);
  expect(digestOf(settings({ a: "2", b: "1" }))).not.toBe(both);
  expect(digestOf(settings({ a: "1", b: "2" }, { c: "Mw==" }))).not.toBe(both);
});

test("of a copy no content is kept, only its digest", () => {
  const kept = withoutContent(digested("ConfigMap", settings({ a: "secret words" }, { b: "c2VjcmV0" })));
  expect(JSON.stringify(kept)).not.toMatch(/secret words|c2VjcmV0/);
});
