import { describe, expect, test } from "vitest";
import type { NameRule } from "../../../src/api/delegated-type.ts";
import type { PodSpec } from "../../../src/api/kubernetes.ts";
import { referencesBy } from "../../../src/pods/references.ts";
import { pod } from "../../support/builders/pod.ts";

const csi = (secretProviderClass: string) => ({
  driver: "secrets-store.csi.k8s.io",
  volumeAttributes: { secretProviderClass },
});
const spec: Partial<PodSpec> = {
  volumes: [
    { name: "a", csi: csi("vault") },
    { name: "b", emptyDir: {} },
    { name: "c", csi: csi("") },
  ],
};
const metadata = {
  labels: { "example.com/group": "gang", empty: "" },
  annotations: { "example.com/group": "other", "example.com/queue": "q" },
};

describe("the names that a pod has", () => {
  test.each<[string, NameRule, string[]]>([
    [
      "at a field of each item of a list",
      { field: "/spec/volumes/*/csi/volumeAttributes/secretProviderClass" },
      ["vault"],
    ],
    ["at a field of each key of a map", { field: "/spec/volumes/*/*/driver" }, [csi("").driver, csi("").driver]],
    ["at a field that it lacks", { field: "/spec/schedulingGroup/podGroupName" }, []],
    ["at a field that is no text", { field: "/spec/volumes/*/csi" }, []],
    ["at a field that every object of JavaScript has", { field: "/spec/constructor/name" }, []],
    ["at a label", { label: "example.com/group" }, ["gang"]],
    ["at a label without a value", { label: "empty" }, []],
    ["at a label that every object of JavaScript has", { label: "constructor" }, []],
    ["at an annotation", { annotation: "example.com/queue" }, ["q"]],
    ["at an annotation that it lacks", { annotation: "example.com/none" }, []],
  ])("%s", (_, rule, names) => {
    expect(referencesBy(rule)(pod({ spec, metadata })).map(({ name }) => name)).toEqual(names);
  });

  test("come with the volume around them", () => {
    const [found] = referencesBy({ field: "/spec/volumes/*/csi/driver" })(pod({ spec }));
    expect(found).toMatchObject({ item: { name: "a" }, within: { driver: "secrets-store.csi.k8s.io" } });
  });
});
