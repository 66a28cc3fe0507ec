import { describe, expect, test } from "vitest";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { type ManifestState, readManifestState, workloadsOf } from "../../../../src/cli/plan/manifest.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import type { ClusterClient, ListPage } from "../../../../src/kube/client.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { type FollowedObjects, followedObjects } from "../../../../src/scheduling/followed-objects.ts";
import { podGroupType } from "../../../support/builders/delegated-type.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { host, namespace } from "../simulation/host.ts";
import { bare, members, uses } from "./named-objects.ts";
import { deployment, plan } from "./plan-with.ts";

describe("an object that pods of a manifest name", () => {
  const found = async (
    objects: WrittenObject[],
    find: ClusterClient["find"],
    followed: readonly FollowedObjects[] = [],
  ): Promise<ManifestState> => {
    const list = async (): Promise<ListPage<never>> => ({ items: [], resourceVersion: "1", size: 0 });
    const workloads = workloadsOf(objects, "team");
    const signal = AbortSignal.timeout(1000);
    return readManifestState(workloads, {
      host: fakeClient({ find, list }),
      objects,
      current: "team",
      followed,
      signal,
    });
  };
  const nothing = async (): Promise<undefined> => undefined;
  const named = deployment(1, {}, { ...uses(false), serviceAccountName: "robot", priorityClassName: "high" });

  test("is missing unless the host has it or any document of the manifest creates it", async () => {
    const none = await found([named], nothing);
    expect([...none.missing].sort()).toEqual([
      "ConfigMap/team/web",
      "PriorityClass//high",
      "ServiceAccount/team/robot",
    ]);
    const written = [
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "web" } },
      { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "other" } },
      { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: "high" } },
    ];
    const some = await found([named, ...written], nothing);
    expect([...some.missing]).toEqual(["ServiceAccount/team/robot"]);
    expect([...some.created].sort()).toEqual(["ConfigMap/team/web", "PriorityClass//high"]);
  });

  test("is missing by the rules of a DelegatedType, too", async () => {
    const followed = [followedObjects(podGroupType)].flatMap((one) => one ?? []);
    const labels = { "scheduling.x-k8s.io/pod-group": "gang" };
    const gang = { ...bare, metadata: { ...bare.metadata, labels } };
    expect([...(await found([gang], nothing, followed)).missing]).toEqual(["podgroups.scheduling.x-k8s.io/team/gang"]);
    const group = { apiVersion: "scheduling.x-k8s.io/v1alpha1", kind: "PodGroup", metadata: { name: "gang" } };
    expect((await found([gang, group], nothing, followed)).missing.size).toBe(0);
  });

  test("is listed as not checked if it limits pods, which are asked about before it exists", async () => {
    const limits = { apiVersion: "v1", kind: "LimitRange", metadata: { name: "limits" } };
    expect((await found([named, limits], nothing)).notChecked).toEqual([
      "LimitRange team/limits of the manifest: pods are checked by those that the host has now",
    ]);
  });

  test("is listed as not checked where the account may not read it, unless the API server checks it", async () => {
    const forbidden = async (resource: Resource<KubeObject>): Promise<undefined> => {
      if (resource.plural === "deployments") return undefined;
      throw kubeError("Forbidden", "no", { cluster: "host", verb: "get", resource: resource.plural });
    };
    const { missing, notChecked } = await found([named], forbidden);
    expect([...missing]).toEqual([]);
    expect(notChecked).toEqual(["configmaps of namespace team that pods name: you may not get configmaps"]);
  });
});

test("refuses pods in a namespace that is being deleted", async () => {
  const ending = namespace("team", { deletionTimestamp: "2026-01-01T00:00:00Z" });
  const { workloads } = await plan(host(members, { namespaces: [ending] }), deployment(1));
  expect(workloads[0]).toMatchObject({ outcome: "refused", message: expect.stringContaining("is being deleted") });
});
