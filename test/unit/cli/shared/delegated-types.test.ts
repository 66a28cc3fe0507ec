import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../../../src/api/resources.ts";
import { findTypeNamed } from "../../../../src/cli/shared/delegated-types.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";

function type(spec: Partial<DelegatedType["spec"]> = {}): Stored<DelegatedType> {
  const own = { group: "shop.example.com", version: "v1", kind: "Widget", plural: "widgets", ...spec };
  const name = own.group === "" ? own.plural : `${own.plural}.${own.group}`;
  return { metadata: { name, uid: name, resourceVersion: "1" }, spec: own };
}

describe("the name of a delegated type", () => {
  const settings = type({ group: "", kind: "ConfigMap", plural: "configmaps" });
  const types = [type(), settings, type({ group: "example.com", kind: "Gadget", plural: "gadgets" })];
  const { signal } = new AbortController();
  const named = (word: string, all = types): ReturnType<typeof findTypeNamed> => {
    const host = new MemoryCluster("host", "uid");
    for (const each of all) host.serve(resourceOfType(each), true);
    for (const each of all) host.put(delegatedTypes, each);
    return findTypeNamed(host.client, word, signal);
  };

  test.each(["widgets", "widget", "Widget", "widgets.shop.example.com", "widget.shop.example.com"])(
    "may be %s",
    async (word) => {
      const { type: found, builtIn } = await named(word);
      expect({ name: found?.metadata.name, builtIn }).toEqual({ name: "widgets.shop.example.com", builtIn: undefined });
    },
  );

  test("may be that of a built-in type", async () => {
    expect((await named("job")).builtIn?.resource.kind).toBe("Job");
  });

  test("that no type has is refused with those that there are", async () => {
    await expect(named("lease")).rejects.toMatchObject({
      message: '"lease": is nothing that it shows: no DelegatedType names it',
      remedy: expect.stringContaining("a delegated type (configmaps, gadgets.example.com, widgets.shop.example.com)"),
    });
  });

  test("that two types have is that of the group which is served first, as for kubectl, or which is written", async () => {
    const two = [...types, type({ group: "other.example.com" })];
    expect((await named("widget", two)).type?.metadata.name).toBe("widgets.shop.example.com");
    expect((await named("widgets.other.example.com", two)).type?.spec.group).toBe("other.example.com");
  });
});
