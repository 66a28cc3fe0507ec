import { describe, expect, test } from "vitest";
import type { DelegationMode } from "../../../../src/api/delegation-mode.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { type DryRunAnswer, dryRun } from "../../../../src/cli/plan/dry-run.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import type { DependencyKind } from "../../../../src/copies/dependencies.ts";
import { dependencyKey } from "../../../../src/copies/named-by-pods.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { namespaces, pods } from "../../../../src/kube/resources.ts";
import { followedObjects } from "../../../../src/scheduling/followed-objects.ts";
import type { HostState } from "../../../../src/simulation/host-state.ts";
import { podGroupType } from "../../../support/builders/delegated-type.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { host } from "../simulation/host.ts";
import { bare, members, uses } from "./named-objects.ts";
import { deployment, planWith, webhookAlone } from "./plan-with.ts";

const key = (kind: DependencyKind, name: string): ReturnType<typeof dependencyKey> =>
  dependencyKey({ kind, namespace: kind.endsWith("Class") ? "" : "team", name });

describe("the dry-run of a pod", () => {
  async function answerTo(code: KubeErrorCode, detail: string): Promise<DryRunAnswer<Stored<Pod>>> {
    const create = async (): Promise<never> => {
      throw kubeError(code, detail, { cluster: "host", namespace: "team", objectName: "web" });
    };
    return dryRun(fakeClient({ create }), pods, pod(), AbortSignal.timeout(1000));
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
    ["a conflict with the stored object", "Conflict", "the object has been modified", "the object has been modified"],
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

  test("is not made without the right to create pods, or by a webhook with side effects", async () => {
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

  test("of another object applies it, as kubectl does", async () => {
    const sent: unknown[] = [];
    const client = fakeClient({
      patch: async (_resource, ref, patch, options) => {
        sent.push(ref, patch, options?.dryRun);
        throw kubeError("Forbidden", "no", { cluster: "host", verb: "patch", resource: "namespaces" });
      },
    });
    const team = { metadata: { name: "team", labels: { "legation.dev/delegation": "annotated" } } };
    const answer = await dryRun(client, namespaces, team, AbortSignal.timeout(1000));
    expect(answer).toMatchObject({ is: "refused", message: "no" });
    expect(sent).toEqual([{ namespace: "", name: "team" }, { type: "apply", body: team, force: true }, true]);
  });
});

describe("the API server's answer about a pod", () => {
  test("holds for all pods of the workload, with its defaults or as a refusal", async () => {
    const answer = (asked: Pod, mode: DelegationMode): DryRunAnswer<Stored<Pod>> =>
      webhookAlone({ ...asked, spec: { containers: [{ name: "main", resources: { requests: { cpu: "8" } } }] } }, mode);
    const unsaid = deployment(5, {}, { containers: [{ name: "main", image: "web:1" }] });
    const defaulted = await planWith(host(members), [unsaid], { answer });
    expect(defaulted.workloads[0]?.pods.filter(({ cluster }) => cluster !== undefined)).toHaveLength(4);
    const refused = { answer: () => ({ is: "refused", message: "no", ofQuota: false }) as const };
    expect((await planWith(host(members), [deployment(2)], refused)).workloads[0]?.pods).toEqual([
      expect.objectContaining({ reason: "FailedCreate", message: "no" }),
      expect.objectContaining({ reason: "FailedCreate", message: "no" }),
    ]);
    expect((await planWith(host(members), [bare], refused)).workloads[0]).toMatchObject({
      outcome: "refused",
      message: "no",
    });
  });

  test("is requested for a pod with a generated name and its controller as owner", async () => {
    const asked: Pod[] = [];
    const answer = (one: Pod): DryRunAnswer<never> => {
      asked.push(one);
      return { is: "notChecked", why: "asked" };
    };
    const set = { ...deployment(2), kind: "StatefulSet" };
    await planWith(host(members), [deployment(2), set, bare], { answer });
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

  test("is requested without names of objects that the manifest creates, which its pods get back", async () => {
    const named = deployment(1, {}, { serviceAccountName: "robot", priorityClassName: "high" });
    const created = new Set([key("ServiceAccount", "robot"), key("PriorityClass", "high")]);
    const asked: Pod["spec"][] = [];
    const planned = await planWith(host(members), [named], {
      found: { created },
      answer: (one, mode) => {
        asked.push(one.spec);
        return webhookAlone(one, mode);
      },
    });
    expect(asked).toEqual([{ containers: expect.anything() }]);
    expect(planned).toMatchObject({
      fits: true,
      notChecked: [expect.stringMatching(/ with robot and high: created by the manifest/)],
    });
  });

  test("is replaced by the webhook's own code where the dry-run is not made, and listed as not checked", async () => {
    const answer = (): DryRunAnswer<never> => ({ is: "notChecked", why: "you may not create pods" });
    expect(await planWith(host(members), [deployment(2)], { answer })).toMatchObject({
      fits: true,
      notChecked: [expect.stringMatching(/ for Deployment team\/web: you may not create pods$/)],
    });
    const robot = deployment(1, {}, { serviceAccountName: "robot" });
    const found = { missing: new Set([key("ServiceAccount", "robot")]) };
    expect((await planWith(host(members), [robot], { answer, found })).workloads[0]?.pods[0]?.message).toContain(
      "robot",
    );
  });
});

describe("a ConfigMap that the host lacks", () => {
  const found = { missing: new Set([key("ConfigMap", "web")]) };

  test("keeps pods waiting, in the kubelet's words", async () => {
    const planned = await planWith(host(members), [deployment(2, {}, uses(false))], { found });
    expect(planned.fits).toBe(false);
    expect(planned.workloads[0]).toMatchObject({ outcome: "waits" });
    expect(planned.workloads[0]?.pods[0]).toMatchObject({
      reason: "FailedMount",
      message: 'MountVolume.SetUp failed for volume "conf" : configmap "web" not found',
    });
  });

  test("keeps no pod waiting where it is optional", async () => {
    expect((await planWith(host(members), [deployment(2, {}, uses(true))], { found })).fits).toBe(true);
  });
});

test("pods that name one object of a confining type are planned into one member", async () => {
  const followed = [followedObjects(podGroupType)].flatMap((one) => one ?? []);
  const pods = ["a", "b", "c"].map((name) => {
    const labels = { "scheduling.x-k8s.io/pod-group": "gang" };
    return { ...bare, metadata: { ...bare.metadata, name, labels } };
  });
  const placesOf = async (state: HostState): Promise<unknown[]> => {
    const { workloads } = await planWith(state, pods);
    return workloads.flatMap((workload) => workload.pods.map(({ cluster }) => cluster));
  };
  expect(await placesOf({ ...host(members), followed })).toEqual(["east", "east", "east"]);
  expect(await placesOf(host(members))).toEqual(["east", "west", "east"]);
});

test("places pods in the manifest's order, whatever answer comes first", async () => {
  const named = (name: string, annotations: Record<string, string> = {}): WrittenObject => {
    const object = deployment(1, annotations, {
      containers: [{ name: "main", resources: { requests: { cpu: "7" } } }],
    });
    return { ...object, metadata: { ...object.metadata, name } };
  };
  const late = async (asked: Pod, mode: DelegationMode): Promise<DryRunAnswer<Stored<Pod>>> => {
    if (asked.metadata?.generateName?.startsWith("first")) await new Promise((resolve) => setImmediate(resolve));
    return webhookAlone(asked, mode);
  };
  const objects = [named("first"), named("wrong", { "legation.dev/clusters": "West" }), named("second")];
  const { workloads } = await planWith(host(members), objects, { answer: late });
  expect(workloads.map(({ name, pods }) => [name, pods[0]?.cluster])).toEqual([
    ["first", "east"],
    ["wrong", undefined],
    ["second", "west"],
  ]);
});
