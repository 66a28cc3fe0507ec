import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { ROOT } from "../../support/legation/cli.ts";
import { lastRelease } from "../../support/releases/last-release.ts";
import { definitionChanges, type Schema, schemaChanges } from "../../support/releases/schema-changes.ts";

const CRDS = "manifests/crds";

const text = { type: "string" };
const holding = (field: Schema, more: Schema = {}): Schema => ({ type: "object", properties: { a: field }, ...more });

describe("a schema change without breaks", () => {
  test.each<[string, Schema, Schema]>([
    ["when nothing changes", holding(text), holding(text)],
    ["when a description changes", holding(text), holding({ ...text, description: "other words" })],
    ["when a field is added", holding(text), { type: "object", properties: { a: text, b: text } }],
    [
      "when a required field with a default is added",
      holding(text),
      { type: "object", properties: { a: text, b: { ...text, default: "x" } }, required: ["b"] },
    ],
    ["when a field need not be there any more", holding(text, { required: ["a"] }), holding(text)],
    ["when bounds are wider", holding({ ...text, maxLength: 3 }), holding({ ...text, maxLength: 4 })],
    ["when bounds go", holding({ type: "integer", minimum: 1 }), holding({ type: "integer" })],
    ["when an integer may be any number", holding({ type: "integer" }), holding({ type: "number" })],
    ["when there are more values", holding({ ...text, enum: ["x"] }), holding({ ...text, enum: ["x", "y"] })],
    ["when a pattern goes", holding({ ...text, pattern: "^x" }), holding(text)],
    ["when a field goes that may be anything", holding(text), { "x-kubernetes-preserve-unknown-fields": true }],
  ])("is accepted: %s", (_case, older, newer) => {
    expect(schemaChanges(older, newer)).toEqual([]);
  });
});

describe("a schema change that breaks valid objects", () => {
  test.each<[string, Schema, Schema, string]>([
    ["when a field goes", holding(text), { type: "object" }, ".a: is gone, so its value is dropped"],
    [
      "when a field has another type",
      holding(text),
      holding({ type: "integer" }),
      ".a: was of type string, is of type",
    ],
    ["when a field is required", holding(text), holding(text, { required: ["a"] }), "the object: a is required now"],
    ["when a bound is new", holding(text), holding({ ...text, maxLength: 9 }), ".a: maxLength was absent, is 9"],
    [
      "when a lower bound rises",
      holding({ type: "integer", minimum: 1 }),
      holding({ type: "integer", minimum: 2 }),
      ".a: minimum was 1, is 2",
    ],
    ["when values are listed", holding(text), holding({ ...text, enum: ["x"] }), ".a: may only be one of x now"],
    [
      "when a value goes",
      holding({ ...text, enum: ["x", "y"] }),
      holding({ ...text, enum: ["x"] }),
      '.a: may no longer be "y"',
    ],
    ["when a pattern is new", holding(text), holding({ ...text, pattern: "^x" }), ".a: pattern was undefined"],
    ["when null is not allowed", holding({ ...text, nullable: true }), holding(text), ".a: is no longer nullable"],
    [
      "when a default changes",
      holding({ ...text, default: "x" }),
      holding({ ...text, default: "y" }),
      '.a: the default was "x"',
    ],
    [
      "when there is a new rule",
      holding(text),
      holding({ ...text, "x-kubernetes-validations": [{ rule: "self != ''" }] }),
      ".a: has a new rule, self != ''",
    ],
    [
      "in the items of a list",
      holding({ type: "array", items: text }),
      holding({ type: "array", items: { ...text, maxLength: 1 } }),
      ".a[]: maxLength was absent, is 1",
    ],
    [
      "in the values of a map",
      holding({ type: "object", additionalProperties: text }),
      holding({ type: "object", additionalProperties: { type: "integer" } }),
      ".a[*]: was of type string",
    ],
    [
      "when a map is none any more",
      holding({ type: "object", additionalProperties: text }),
      holding({ type: "object" }),
      ".a: is no map any more",
    ],
    [
      "when a list is merged by other keys",
      holding({ type: "array", "x-kubernetes-list-map-keys": ["type"] }),
      holding({ type: "array", "x-kubernetes-list-map-keys": ["key"] }),
      ".a: x-kubernetes-list-map-keys was",
    ],
  ])("is reported: %s", (_case, older, newer, line) => {
    expect(schemaChanges(older, newer)).toEqual([expect.stringContaining(line)]);
  });
});

describe("the definitions of this version", () => {
  const read = (folder: string, file: string): unknown => parse(readFileSync(join(folder, CRDS, file), "utf8"));
  const { folder, version } = lastRelease();
  // Stored objects stay valid until they change: on an update, API servers apply a new rule only to changed fields
  // (CRDValidationRatcheting, on by default since 1.30). The values that these rules refuse never had an effect.
  const ratcheted = ["total", "perNamespace"].map(
    (limit) => `clusters.legation.dev.spec.limits.${limit}: has a new rule`,
  );
  const isRatcheted = (change: string): boolean => ratcheted.some((known) => change.startsWith(known));

  test.each(readdirSync(join(folder, CRDS)))(`keep what the last release (${version}) has stored by %s`, (file) => {
    const changes = definitionChanges(read(folder, file), read(ROOT, file));
    expect(changes.filter((change) => !isRatcheted(change))).toEqual([]);
  });

  test("are incompatible under another name, version or scope", () => {
    const file = "legation.dev_clusters.yaml";
    const text = readFileSync(join(ROOT, CRDS, file), "utf8");
    const now = read(ROOT, file);
    expect(definitionChanges(now, parse(text.replace("scope: Cluster", "scope: Namespaced")))).toHaveLength(1);
    expect(definitionChanges(now, parse(text.replace("name: v1alpha1", "name: v1beta1")))).toHaveLength(1);
    expect(definitionChanges(now, parse(text.replace("status: {}", "scale: {}")))).toHaveLength(1);
  });
});
