import { expect, test } from "vitest";
import { whyNotDelegated } from "../../../../src/cli/status/not-delegated.ts";
import { namespace } from "../plan/host.ts";

const annotated = namespace("team");
const all = namespace("team", { labels: { "legation.dev/delegation": "all" } });
const daemonSet = [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "log", uid: "d", controller: true }];
const asks = { annotations: { "legation.dev/delegate": "true" } };

test.each([
  [
    "its namespace has no label, whatever it asks for",
    asks,
    namespace("team", { labels: {} }),
    "namespace team has no label legation.dev/delegation: write `kubectl label namespace team legation.dev/delegation=annotated`, then make its pods anew",
  ],
  [
    "it asks for nothing",
    {},
    annotated,
    'nothing asks for it: write the annotation legation.dev/delegate: "true" on its workload; a bare pod has to be made anew with it',
  ],
  [
    "what should be an annotation is a label",
    { labels: { "legation.dev/clusters": "west" } },
    annotated,
    "legation.dev/clusters is a label of it, and says something only as an annotation: write it under metadata.annotations",
  ],
  [
    "it declines",
    { annotations: { "legation.dev/delegate": "false" } },
    all,
    'its annotation legation.dev/delegate is "false"',
  ],
  ["a DaemonSet made it", { ownerReferences: daemonSet }, all, "pods of DaemonSets belong to nodes of this cluster"],
  [
    "it was made before anybody asked",
    asks,
    annotated,
    "it was made before it, its workload or its namespace asked for delegation: pods are not moved, so make it anew",
  ],
  ["its namespace may not be read", {}, undefined, "its namespace, workload or itself did not ask for delegation"],
])("a pod is not delegated since %s", (_case, metadata, own, why) => {
  expect(whyNotDelegated(metadata, own)).toBe(why);
});
