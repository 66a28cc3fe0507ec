import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { typeNamed } from "../../../../src/cli/shared/delegated-types.ts";

function type(spec: Partial<DelegatedType["spec"]> = {}): Stored<DelegatedType> {
  const own = { group: "shop.example.com", version: "v1", kind: "Widget", plural: "widgets", ...spec };
  const name = own.group === "" ? own.plural : `${own.plural}.${own.group}`;
  return { metadata: { name, uid: name, resourceVersion: "1" }, spec: own };
}

describe("the name of a delegated type", () => {
  const settings = type({ group: "", kind: "ConfigMap", plural: "configmaps" });
  const types = [type(), settings, type({ group: "example.com", kind: "Gadget", plural: "gadgets" })];

  test.each(["widgets", "widget", "Widget", "widgets.shop.example.com", "widget.shop.example.com"])(
    "may be %s",
    (word) => {
      expect(typeNamed(types, word)).toEqual(types[0]);
    },
  );

  test("that no type has is refused with those that there are", () => {
    expect(() => typeNamed(types, "lease")).toThrow('"lease": is nothing that it shows: no DelegatedType names it');
  });

  test("that two types have is refused with both", () => {
    const two = [...types, type({ group: "other.example.com" })];
    expect(() => typeNamed(two, "widget")).toThrow("of widgets.shop.example.com and of widgets.other.example.com");
  });
});
