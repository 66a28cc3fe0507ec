import { expect, test } from "vitest";
import { z } from "zod";
import type { ServedType } from "../../../../src/cli/shared/discovery.ts";
import { typeQueries, typesNamed } from "../../../../src/cli/shared/type-names.ts";
import { apiVersionOf } from "../../../../src/kube/resources.ts";

function served(
  apiVersion: string,
  plural: string,
  kind: string,
  more: Partial<Pick<ServedType, "shortNames" | "categories">> = {},
): ServedType {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const resource = { group, version, plural, kind, namespaced: true };
  return { resource, verbs: ["list"], singular: kind.toLowerCase(), shortNames: [], categories: [], ...more };
}

const TYPES = [
  served("v1", "pods", "Pod", { shortNames: ["po"], categories: ["all"] }),
  served("v1", "events", "Event", { shortNames: ["ev"] }),
  served("apps/v1", "deployments", "Deployment", { shortNames: ["deploy"], categories: ["all"] }),
  served("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", { categories: ["all"] }),
  served("autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", { categories: ["all"] }),
  served("events.k8s.io/v1", "events", "Event", { shortNames: ["ev"] }),
  served("shop.example.com/v1", "potatoes", "Po"),
];

test.each<[string, readonly string[]]>([
  ["pods", ["v1 pods"]],
  ["pod", ["v1 pods"]],
  ["Pod", ["v1 pods"]],
  ["deploy", ["apps/v1 deployments"]],
  ["deployments.apps", ["apps/v1 deployments"]],
  ["deployments.app", ["apps/v1 deployments"]],
  ["deployments.v1.apps", ["apps/v1 deployments"]],
  ["deployments.v2.apps", []],
  ["horizontalpodautoscalers", ["autoscaling/v2 horizontalpodautoscalers"]],
  ["horizontalpodautoscalers.v1.autoscaling", ["autoscaling/v1 horizontalpodautoscalers"]],
  ["ev", ["v1 events"]],
  ["events.events.k8s.io", ["events.k8s.io/v1 events"]],
  // A name counts more than another type's short name.
  ["po", ["shop.example.com/v1 potatoes"]],
  ["all", ["v1 pods", "apps/v1 deployments", "autoscaling/v2 horizontalpodautoscalers"]],
  ["nothing", []],
])("resolves %s as kubectl does", (word, expected) => {
  const found = typesNamed(TYPES, word).map(({ resource }) => `${apiVersionOf(resource)} ${resource.plural}`);
  expect(found).toEqual(expected);
});

function parse(type: string, ...names: string[]): unknown {
  const schema = z.null().transform((_value, context) => typeQueries(type, names, context, "pods"));
  const { success, data, error } = schema.safeParse(null);
  return success ? data : error.issues.map(({ path, message }) => `${String(path[0])}: ${message}`);
}

test("reads types with names, and types with a name each", () => {
  expect(parse("pods,svc", "a", "b")).toEqual([
    { word: "pods", names: ["a", "b"] },
    { word: "svc", names: ["a", "b"] },
  ]);
  expect(parse("pod/a", "svc/b", "pod/c")).toEqual([
    { word: "pod", names: ["a", "c"] },
    { word: "svc", names: ["b"] },
  ]);
});

test.each<[string[], RegExp]>([
  [["pods,"], /^type: "pods," names no type; write e\.g\. pods$/],
  [["pods", "svc/a"], /^names: "svc\/a" is no name; write TYPE NAME\.\.\., or TYPE\/NAME for each object$/],
  [["pod/a", "b"], /^type: "b" is not TYPE\/NAME; write e\.g\. pod\/web-0$/],
  [["pod,svc/a"], /^type: "pod,svc\/a" is not TYPE\/NAME/],
])("refuses %j", ([type = "", ...names], message) => {
  expect(parse(type, ...names)).toEqual([expect.stringMatching(message)]);
});
