import { expect, test } from "vitest";
import type { KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { readOwnWorkload } from "../../../../src/cli/explain/read-pod.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const asking = { annotations: { "legation.dev/delegate": "true" } };
const spec = { containers: [{ name: "app", image: "app" }] };

const owned = (apiVersion: string, kind: string, name: string) => ({
  ownerReferences: [{ apiVersion, kind, name, uid: `uid of ${name}`, controller: true }],
});
const object = (apiVersion: string, kind: string, name: string, metadata: object, rest: object): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, namespace: "team", uid: `uid of ${name}`, resourceVersion: "1", ...metadata },
  ...rest,
});
const podOf = (apiVersion: string, kind: string, name: string): Stored<Pod> => ({
  metadata: { name: "pod", namespace: "team", uid: "p", resourceVersion: "1", ...owned(apiVersion, kind, name) },
});

const driver = object("v1", "Pod", "driver", asking, { spec });
const nightly = object("batch/v1", "CronJob", "nightly", asking, {
  spec: { jobTemplate: { spec: { template: { metadata: asking, spec } } } },
});
const run = object("batch/v1", "Job", "nightly-1", owned("batch/v1", "CronJob", "nightly"), {
  spec: { template: { spec } },
});

/** The workload of a pod where the host has these objects; of `forbidden` kinds none may be read. */
function read(pod: Stored<Pod>, objects: readonly KubeObject[], forbidden?: string) {
  const client = fakeClient({
    find: async ({ kind, plural }, { name }) => {
      if (kind === forbidden) {
        throw kubeError("Forbidden", "no", { cluster: "host", verb: "get", resource: plural });
      }
      return objects.find((each) => each.kind === kind && each.metadata?.name === name);
    },
  });
  return readOwnWorkload(client, pod, signal);
}

test("reads the outermost workload of a pod that the account may read", async () => {
  const pod = podOf("batch/v1", "Job", "nightly-1");
  expect(await read(pod, [run, nightly])).toMatchObject({ kind: "CronJob", name: "nightly", template: asking });
  expect(await read(pod, [run, nightly], "CronJob")).toMatchObject({ kind: "Job", name: "nightly-1" });
  expect(await read(pod, [run, nightly], "Job")).toBeUndefined();
});

test("reads the Deployment of a pod, and its template", async () => {
  const pod = podOf("apps/v1", "ReplicaSet", "web-1");
  const own = { spec: { selector: {}, template: { metadata: asking, spec } } };
  const objects = [
    object("apps/v1", "ReplicaSet", "web-1", owned("apps/v1", "Deployment", "web"), { spec: { template: { spec } } }),
    object("apps/v1", "Deployment", "web", {}, own),
  ];
  expect(await read(pod, objects)).toMatchObject({ kind: "Deployment", template: asking });
});

test("reads no workload where a pod created the pod", async () => {
  expect(await read(podOf("v1", "Pod", "driver"), [driver])).toBeUndefined();
});
