import { describe, expect, test } from "vitest";
import type { OwnerReference } from "../../../src/api/kubernetes.ts";
import { type WishingWorkload, wishesOf } from "../../../src/scheduling/workload.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const CLUSTERS = "legation.dev/clusters";
const MARK = { "legation.dev/wishes-of": "Deployment/web" };

function owner(kind: string, name: string, apiVersion = "apps/v1", uid = "u"): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true };
}

function found(
  owned: OwnerReference | undefined,
  workloads: Readonly<Record<string, Partial<WishingWorkload>>>,
  { annotations = {}, labels = {} }: { annotations?: Record<string, string>; labels?: Record<string, string> } = {},
): ReturnType<typeof wishesOf> {
  const pod = proxyPod({
    metadata: { annotations, labels, ...(owned === undefined ? {} : { ownerReferences: [owned] }) },
  });
  return wishesOf(pod, (namespace, { kind, name }) => {
    const workload = workloads[`${namespace}/${kind}/${name}`];
    return workload && { annotations: { [CLUSTERS]: "west" }, ...workload };
  });
}

const WEST = { annotations: { [CLUSTERS]: "west" } };
const hash = { labels: { "pod-template-hash": "7f9" } };

describe("a pod has the wishes", () => {
  test.each<[string, ReturnType<typeof found>]>([
    ["of its StatefulSet", found(owner("StatefulSet", "db"), { "team/StatefulSet/db": { uid: "u" } })],
    ["of its ReplicaSet", found(owner("ReplicaSet", "web"), { "team/ReplicaSet/web": { uid: "u" } })],
    [
      "of its ReplicationController",
      found(owner("ReplicationController", "web", "v1"), { "team/ReplicationController/web": {} }),
    ],
    [
      "of the Deployment of its ReplicaSet",
      found(owner("ReplicaSet", "web-7f9"), { "team/Deployment/web": { uid: "d" } }, hash),
    ],
    ["of the workload that its template names", found(undefined, { "team/Deployment/web": {} }, { annotations: MARK })],
    [
      "of the Deployment whose template an Argo Rollout refers to",
      found(
        owner("ReplicaSet", "rollout-7f9"),
        { "team/Deployment/web": {} },
        {
          annotations: MARK,
          labels: { "rollouts-pod-template-hash": "7f9" },
        },
      ),
    ],
  ])("%s", (_, wishes) => {
    expect(wishes).toEqual(WEST);
  });
});

describe("a pod has no wishes", () => {
  test.each<[string, ReturnType<typeof found>]>([
    ["without a controller", found(undefined, { "team/Deployment/web": {} })],
    [
      "of a workload that had the name before",
      found(owner("StatefulSet", "db"), { "team/StatefulSet/db": { uid: "old" } }),
    ],
    [
      "of another project's kind of the same name",
      found(owner("StatefulSet", "db", "apps.kruise.io/v1beta1"), { "team/StatefulSet/db": { uid: "u" } }),
    ],
    ["of a Job", found(owner("Job", "sum", "batch/v1"), { "team/Job/sum": {} })],
  ])("%s", (_, wishes) => {
    expect(wishes).toEqual({ annotations: {} });
  });
});

describe("the workload of a pod is unseen", () => {
  const db = { annotations: { "legation.dev/wishes-of": "StatefulSet/db" } };

  test.each<[string, Readonly<Record<string, Partial<WishingWorkload>>>]>([
    ["while nothing is known of it", {}],
    ["while only an earlier one of that name is known", { "team/StatefulSet/db": { uid: "old" } }],
  ])("%s", (_, workloads) => {
    const { unseen } = found(owner("StatefulSet", "db"), workloads, db);
    expect(unseen).toEqual({ kind: "StatefulSet", name: "db" });
  });

  test("no longer once it is known to be gone", () => {
    const gone = { annotations: {} };
    expect(found(owner("StatefulSet", "db"), { "team/StatefulSet/db": gone }, db)).toEqual({ annotations: {} });
  });
});
