import { expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { definitionKind, whyNotFollowing, whyNotServed } from "../../../src/copies/definitions.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { delegatedKind } from "../../../src/copies/objects.ts";
import { customResourceDefinitions } from "../../../src/kube/resources.ts";

const NAME = "things.example.com";
const version = (name: string, storage: boolean, served = true): object => ({ name, storage, served });

function definition(spec: object, more: object = {}): Stored<AnyObject> {
  const metadata = { name: NAME, uid: "u1", resourceVersion: "1" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata,
    spec: { versions: [version("v1", true)], ...spec },
    ...more,
  };
}

test("the copy of a definition is known by its own marks, and has no conversion", () => {
  const kind = definitionKind(NAME, (text) => text);
  const source = definition({ conversion: { strategy: "None" } }, { status: { storedVersions: ["v1"] } });
  const copy = toCopy(kind, source, { id: "host-1", name: "home" });
  expect(copy.spec).toEqual({ versions: [version("v1", true)] });
  expect(copy).not.toHaveProperty("status");
  // A copier of whole objects would take it for one of its own, and delete it.
  expect(copy.metadata?.labels).not.toHaveProperty(["legation.dev/whole"]);
  expect(kind.applied?.adoptionMarks(source)).toBeUndefined();
});

test("the copy of a definition that follows is no whole object of a DelegatedType for definitions", () => {
  const { group, version, plural, kind } = customResourceDefinitions;
  const type = { metadata: { name: `${plural}.${group}` }, spec: { group, version, plural, kind } };
  expect(delegatedKind(type, (text) => text).copies).toEqual({ labelSelector: "legation.dev/whole" });
  expect(definitionKind(NAME, (text) => text).copies).toEqual({ fieldSelector: `metadata.name=${NAME}` });
});

const webhook = { conversion: { strategy: "Webhook" } };
const two = { versions: [version("v1", true), version("v2", false)] };
const deleting = {
  metadata: { name: NAME, uid: "u1", resourceVersion: "1", deletionTimestamp: "2026-01-02T03:04:05Z" },
};

test.each<[string, Stored<AnyObject>, Stored<AnyObject> | undefined, RegExp | undefined]>([
  ["a new definition", definition({}), undefined, undefined],
  ["another version that is not stored", definition(two), definition({}), undefined],
  ["a webhook that has nothing to convert", definition(webhook), undefined, undefined],
  ["a webhook that converts", definition({ ...two, ...webhook }), undefined, /a webhook of this cluster converts/],
  [
    "another stored version",
    definition({ versions: [version("v1", false), version("v2", true)] }),
    definition({}),
    /stored there in version v1 and here in v2/,
  ],
  ["a definition that is being deleted", definition({}, deleting), definition({}), /is being deleted/],
])("%s follows into a member, or not for a reason", (_, source, copy, reason) => {
  const found = whyNotFollowing(source, copy);
  if (reason === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(reason);
});

test("names that the member's API server does not accept are a reason", () => {
  const conditions = [{ type: "NamesAccepted", status: "False", message: '"things" is already in use' }];
  expect(whyNotServed(definition({}, { status: { conditions } }))).toContain('"things" is already in use');
  expect(whyNotServed(definition({}))).toBeUndefined();
});
