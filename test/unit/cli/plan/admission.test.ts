import { describe, expect, test } from "vitest";
import type { KubeObject, Pod, ResourceQuota, Stored } from "../../../../src/api/kubernetes.ts";
import type { WrittenObject } from "../../../../src/cli/plan/documents.ts";
import { type Answer, dryRunNamespace, dryRunPod } from "../../../../src/cli/plan/dry-run.ts";
import type { PreparedWorkload } from "../../../../src/cli/plan/prepare.ts";
import { type ManifestState, readManifestState } from "../../../../src/cli/plan/read-host.ts";
import type { ClusterClient, ListPage } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { type DependencyKind, dependencyKey } from "../../../../src/pods/dependencies.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../client.ts";
import { deployment, host, namespace, plan, planWith, webhookAlone } from "./host.ts";

const members = { east: {}, west: {} };
const key = (kind: DependencyKind, name: string): ReturnType<typeof dependencyKey> =>
  dependencyKey({ kind, namespace: kind.endsWith("Class") ? "" : "team", name });

function quota(
  hard: Record<string, string>,
  used: Record<string, string> = {},
  spec: ResourceQuota["spec"] = {},
): Stored<ResourceQuota> {
  const metadata = { name: "team", namespace: "team", uid: "quota", resourceVersion: "1" };
  return { metadata, spec: { hard, ...spec }, status: { used } };
}

/** A Deployment whose one container has these resources. */
const resourced = (resources: object, spec: object = {}): WrittenObject =>
  deployment(3, {}, { containers: [{ name: "main", image: "web:1", resources }], ...spec });

const bare: WrittenObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", annotations: { "legation.dev/delegate": "true" } },
  spec: { containers: [{ name: "main", image: "web:1" }] },
};

const uses = (optional: boolean): object => ({
  volumes: [{ name: "conf", configMap: { name: "web", ...(optional ? { optional } : {}) } }],
});

describe("the dry-run of a pod", () => {
  async function answerTo(code: KubeErrorCode, detail: string): Promise<Answer<Stored<Pod>>> {
    const create = async (): Promise<never> => {
      throw new KubeError(detail, {
        code,
        cluster: "host",
        verb: "create",
        resource: "pods",
        namespace: "team",
        objectName: "web",
      });
    };
    return dryRunPod(fakeClient({ create }), pod(), AbortSignal.timeout(1000));
  }

  test.each<[string, KubeErrorCode, string, string]>([
    [
      "an admission plugin",
      "Forbidden",
      'pods "web-x7" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
      "maximum cpu usage per Container is 1, but limit is 2",
    ],
    [
      "a webhook",
      "Forbidden",
      'admission webhook "deny.example.com" denied the request: not on a Friday',
      'admission webhook "deny.example.com" denied the request: not on a Friday',
    ],
    ["validation", "Unprocessable", 'Pod "web" is invalid: spec.x: bad', 'Pod "web" is invalid: spec.x: bad'],
    [
      "a webhook that does not answer",
      "ServerError",
      'Internal error occurred: failed calling webhook "x": connection refused',
      'Internal error occurred: failed calling webhook "x": connection refused',
    ],
  ])("returns the words of %s", async (_what, code, detail, message) => {
    expect(await answerTo(code, detail)).toEqual({ is: "refused", message, ofQuota: false });
  });

  test("tells a full quota from other refusals", async () => {
    const message = "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2";
    expect(await answerTo("Forbidden", `pods "web" is forbidden: ${message}`)).toMatchObject({
      message,
      ofQuota: true,
    });
  });

  test("is not made for an asker without the right, or by a webhook with side effects", async () => {
    const rights =
      'pods is forbidden: User "ann" cannot create resource "pods" in API group "" in the namespace "team"';
    expect(await answerTo("Forbidden", rights)).toEqual({ is: "notChecked", why: "you may not create pods" });
    const words = 'admission webhook "audit.example.com" does not support dry run';
    expect(await answerTo("BadRequest", words)).toEqual({
      is: "notChecked",
      why: `${words}: the sideEffects of its configuration are not None`,
    });
  });

  test("fails when the API server does not answer", async () => {
    await expect(answerTo("NotSent", "connection refused")).rejects.toThrow("connection refused");
  });

  test("of a namespace that exists is a patch", async () => {
    const sent: unknown[] = [];
    const client = fakeClient({
      patch: async (_resource, ref, patch, options) => {
        sent.push(ref, patch.body, options?.dryRun);
        throw new KubeError("no", {
          code: "Forbidden",
          cluster: "host",
          verb: "patch",
          resource: "namespaces",
          objectName: "team",
        });
      },
    });
    const answer = await dryRunNamespace(client, namespace("team"), false, AbortSignal.timeout(1000));
    expect(answer).toMatchObject({ is: "refused", message: "no" });
    const labels = { "legation.dev/delegation": "annotated" };
    expect(sent).toEqual([{ name: "team" }, { metadata: { labels, annotations: {} } }, true]);
  });
});

describe("the API server's answer about a pod", () => {
  test("holds for all pods of the workload: its defaults count, and its refusal", () => {
    const answer = (asked: Pod, workload: PreparedWorkload): Answer<Stored<Pod>> =>
      webhookAlone(
        { ...asked, spec: { containers: [{ name: "main", resources: { requests: { cpu: "8" } } }] } },
        workload,
      );
    const unsaid = deployment(5, {}, { containers: [{ name: "main", image: "web:1" }] });
    const defaulted = planWith(host(members), [unsaid], { answer });
    expect(defaulted.workloads[0]?.pods.filter(({ cluster }) => cluster !== undefined)).toHaveLength(4);
    const refused = { answer: () => ({ is: "refused", message: "no", ofQuota: false }) as const };
    expect(planWith(host(members), [deployment(2)], refused).workloads[0]?.pods).toEqual([
      expect.objectContaining({ reason: "FailedCreate", message: "no" }),
      expect.objectContaining({ reason: "FailedCreate", message: "no" }),
    ]);
    expect(planWith(host(members), [bare], refused).workloads[0]).toMatchObject({ outcome: "refused", message: "no" });
  });

  test("is asked for with a name that the API server makes up, owned by its controller", () => {
    const asked: Pod[] = [];
    const answer = (one: Pod): Answer<never> => {
      asked.push(one);
      return { is: "notChecked", why: "asked" };
    };
    const set = { ...deployment(2), kind: "StatefulSet" };
    planWith(host(members), [deployment(2), set, bare], { answer });
    expect(asked.map(({ metadata }) => metadata)).toEqual([
      expect.objectContaining({
        namespace: "team",
        generateName: "web-planned-",
        ownerReferences: [expect.objectContaining({ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-planned" })],
      }),
      expect.objectContaining({ generateName: "web-" }),
      expect.objectContaining({ name: "web" }),
    ]);
    for (const { metadata } of asked) expect(metadata).not.toHaveProperty("uid");
  });

  test("is asked for without the names of what the manifest creates, which come back in its pods", () => {
    const named = deployment(1, {}, { serviceAccountName: "robot", priorityClassName: "high" });
    const coming = new Set([key("ServiceAccount", "robot"), key("PriorityClass", "high")]);
    const asked: Pod["spec"][] = [];
    const planned = planWith(host(members), [named], {
      found: { coming },
      answer: (one, workload) => {
        asked.push(one.spec);
        return webhookAlone(one, workload);
      },
    });
    expect(asked).toEqual([{ containers: expect.anything() }]);
    expect(planned).toMatchObject({
      fits: true,
      notChecked: [expect.stringMatching(/ with robot and high: created by the manifest/)],
    });
  });

  test("that there is none leaves the webhook's own code, and says so", () => {
    const answer = (): Answer<never> => ({ is: "notChecked", why: "you may not create pods" });
    expect(planWith(host(members), [deployment(2)], { answer })).toMatchObject({
      fits: true,
      notChecked: [expect.stringMatching(/ for Deployment team\/web: you may not create pods$/)],
    });
    const robot = deployment(1, {}, { serviceAccountName: "robot" });
    const found = { missing: new Set([key("ServiceAccount", "robot")]) };
    expect(planWith(host(members), [robot], { answer, found }).workloads[0]?.pods[0]?.message).toContain("robot");
  });
});

describe("what pods name and the host lacks", () => {
  const found = { missing: new Set([key("ConfigMap", "web")]) };

  test("is waited for in kubelet's words, as the pod's condition would say", () => {
    const planned = planWith(host(members), [deployment(2, {}, uses(false))], { found });
    expect(planned.fits).toBe(false);
    expect(planned.workloads[0]).toMatchObject({ outcome: "waits" });
    expect(planned.workloads[0]?.pods[0]).toMatchObject({
      reason: "FailedMount",
      message: 'MountVolume.SetUp failed for volume "conf" : configmap "web" not found',
    });
  });

  test("is not waited for where it is optional", () => {
    expect(planWith(host(members), [deployment(2, {}, uses(true))], { found }).fits).toBe(true);
  });
});

describe("what the host has of the names of a manifest's pods", () => {
  const found = async (objects: WrittenObject[], find: ClusterClient["find"]): Promise<ManifestState> => {
    const list = async (): Promise<ListPage<never>> => ({ items: [], resourceVersion: "1", size: 0 });
    return readManifestState(fakeClient({ find, list }), objects, "team", AbortSignal.timeout(1000));
  };
  const nothing = async (): Promise<undefined> => undefined;
  const named = deployment(1, {}, { ...uses(false), serviceAccountName: "robot", priorityClassName: "high" });

  test("is missing, unless the manifest creates it, wherever in it that stands", async () => {
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
    expect([...some.coming].sort()).toEqual(["ConfigMap/team/web", "PriorityClass//high"]);
  });

  test("is told as not checked where the asker may not read it, but for what the API server looks for", async () => {
    const forbidden = async (resource: Resource<KubeObject>): Promise<undefined> => {
      if (resource.plural === "deployments") return undefined;
      throw new KubeError("no", { code: "Forbidden", cluster: "host", verb: "get", resource: resource.plural });
    };
    const { missing, notChecked } = await found([named], forbidden);
    expect([...missing]).toEqual([]);
    expect(notChecked).toEqual(["configmaps of namespace team that pods name: you may not get configmaps"]);
  });
});

describe("a quota of the host", () => {
  const refusals = (quotas: readonly Stored<ResourceQuota>[], ...objects: WrittenObject[]): (string | undefined)[] =>
    planWith(host(members), objects, { found: { quotas } }).workloads.flatMap(({ pods }) =>
      pods.filter(({ reason }) => reason === "FailedCreate").map(({ message }) => message),
    );

  test("lets in what it has room for, and refuses the rest in the API server's words", () => {
    const quotas = [quota({ pods: "4", cpu: "10" }, { pods: "2", cpu: "2" })];
    const planned = planWith(host(members), [deployment(3)], { found: { quotas } });
    expect(planned.workloads[0]?.pods.map(({ cluster, reason }) => cluster ?? reason)).toEqual([
      "east",
      "west",
      "FailedCreate",
    ]);
    expect(planned.workloads[0]?.pods[2]?.message).toBe(
      "exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4",
    );
  });

  test.each<[string, Record<string, string>, object, object, string | undefined]>([
    [
      "cores",
      { "requests.cpu": "2500m" },
      { requests: { cpu: "1" } },
      {},
      "requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2500m",
    ],
    [
      "tenths of cores, whose sum is not exact",
      { "requests.cpu": "300m" },
      { requests: { cpu: "100m" } },
      {},
      undefined,
    ],
    [
      "limits",
      { "limits.memory": "1Gi" },
      { limits: { memory: "512Mi" } },
      {},
      "requested: limits.memory=512Mi, used: limits.memory=1Gi, limited: limits.memory=1Gi",
    ],
    [
      "GPUs",
      { "requests.nvidia.com/gpu": "2" },
      { limits: { "nvidia.com/gpu": "1" } },
      {},
      "requested: requests.nvidia.com/gpu=1",
    ],
    [
      "limits of the pod as a whole",
      { cpu: "4" },
      {},
      { resources: { limits: { cpu: "3", memory: "1Gi" } } },
      "requested: cpu=3, used: cpu=3, limited: cpu=4",
    ],
    ["what is not asked for", { "requests.nvidia.com/gpu": "0", services: "0" }, {}, {}, undefined],
  ])("of %s", (_what, hard, resources, podSpec, words) => {
    const refused = refusals([quota(hard)], resourced(resources, podSpec));
    if (words === undefined) expect(refused).toEqual([]);
    else expect(refused.at(-1)).toContain(words);
  });

  test("has less room for what comes after pods that run on the host", () => {
    const silent = { ...deployment(2), metadata: { name: "silent" } };
    expect(refusals([quota({ pods: "3" })], silent, deployment(2))).toHaveLength(1);
  });

  test("of another namespace is not counted", () => {
    const other = quota({ pods: "0" });
    expect(refusals([{ ...other, metadata: { ...other.metadata, namespace: "other" } }], deployment(3))).toEqual([]);
  });

  test("with scopes, and what the manifest writes of quotas and LimitRanges, is told as not checked", () => {
    const quotas = [quota({ pods: "0" }, {}, { scopes: ["BestEffort"] })];
    const written = { apiVersion: "v1", kind: "LimitRange", metadata: { name: "limits" } };
    expect(planWith(host(members), [written, deployment(3)], { found: { quotas } })).toMatchObject({
      fits: true,
      notChecked: [
        "LimitRange team/limits of the manifest: pods are checked by those that the host has now",
        "ResourceQuota team/team for more than one pod: it has scopes",
      ],
    });
  });

  test("gets back the part of pods that are replaced, also when the API server finds it full", () => {
    const old = proxyPod({
      name: "web-6d4cf56db6-aaaaa",
      uid: "old",
      metadata: {
        labels: { "legation.dev/proxy": "true", "pod-template-hash": "6d4cf56db6" },
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-6d4cf56db6", uid: "rs", controller: true },
        ],
      },
    });
    const state = host(members, { proxies: [old] });
    const quotas = [quota({ pods: "1" }, { pods: "1" })];
    const full: Answer<never> = { is: "refused", message: "exceeded quota: team", ofQuota: true };
    const before = deployment(1, {}, { containers: [{ name: "main", image: "web:0" }] });
    const existing = [{ ...before, metadata: { ...before.metadata, namespace: "team" } }];
    const replaced = planWith(state, [deployment(1)], { found: { existing, quotas }, answer: () => full });
    expect(replaced.fits).toBe(true);
    expect(replaced.notChecked).toEqual([
      expect.stringContaining("exceeded quota: team, until the pods that go have gone"),
    ]);
    expect(planWith(state, [deployment(1)], { found: { quotas }, answer: () => full }).fits).toBe(false);
  });
});

test("a namespace that is being deleted takes nothing new", () => {
  const ending = namespace("team", { deletionTimestamp: "2026-01-01T00:00:00Z" });
  const { workloads } = plan(host(members, { namespaces: [ending] }), deployment(1));
  expect(workloads[0]).toMatchObject({ outcome: "refused", message: expect.stringContaining("is being deleted") });
});
