import { expect, test } from "vitest";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { descriptionOf } from "../../../../src/cli/describe/text.ts";

const POD: KubeObject & { readonly spec: object; readonly type: string } = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "web-0",
    namespace: "shop",
    labels: { app: "web", tier: "front" },
    annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "u" }],
  },
  type: "x",
  spec: { containers: [{ name: "main", command: ["sh", "-c", "a\nb"] }] },
};

const EVENTS = {
  columns: ["Last Seen", "Type", "Object", "Message"].map((name) => ({ name, priority: 0 })),
  rows: [{ cells: ["5s", "Normal", "pod/web-0", "Started\u001b[31m"], object: {} }],
  resourceVersion: "1",
};

test("describes an object by its metadata, fields and events", () => {
  expect(descriptionOf({ cluster: "west", object: POD, events: EVENTS }).split("\n")).toEqual([
    "Cluster:      west",
    "Name:         web-0",
    "Namespace:    shop",
    "Kind:         Pod (v1)",
    "Labels:       app=web",
    "              tier=front",
    "Annotations:  <none>",
    "Owned by:     ReplicaSet/web",
    "Type: x",
    "Spec:",
    "  containers:",
    "    - name: main",
    "      command:",
    "        - sh",
    "        - -c",
    "        - |-",
    "          a",
    "          b",
    "Events:",
    "  LAST SEEN  TYPE    MESSAGE",
    "  5s         Normal  Started",
  ]);
});

test.each<[string, typeof EVENTS | undefined, string]>([
  ["there are none", { ...EVENTS, rows: [] }, "Events: <none>"],
  ["they cannot be read", undefined, "Events: not readable"],
])("says of events that %s", (_what, events, line) => {
  expect(descriptionOf({ cluster: "west", object: POD, events })).toContain(`\n${line}`);
});

test("leaves out the values of Secrets", () => {
  const object: KubeObject & { readonly data: object } = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "token" },
    data: { password: btoa("secret") },
  };
  const text = descriptionOf({ cluster: "west", object, events: undefined });
  expect(text).toContain("Data:\n  password: 6 bytes\n");
  expect(text).not.toContain(btoa("secret"));
});
