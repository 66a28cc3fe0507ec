import { beforeAll, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { clusters } from "../../../src/api/resources.ts";
import { conditionsOf, statusOf } from "../../../src/copies/object-status.ts";
import { jobs, type Resource } from "../../../src/kube/resources.ts";
import {
  createKueueAccount,
  installKueue,
  KUEUE_ACCOUNT,
  KUEUE_NAMESPACE,
  type MultiKueue,
  removeKueue,
  startMultiKueue,
} from "../../support/engines/kueue.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { openMember } from "../../support/legation/access.ts";
import { installClusterProfiles, removeClusterProfiles } from "../../support/profiles/definition.ts";

const host = hostCluster();
const west = memberCluster("west");
// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  await installClusterProfiles(host);
  afterFile(() => removeClusterProfiles(host));
});
const running = useLegation({ controllerFlags: [`--home-api-server=${host.server}`] });
const clients = useClients();
const patient = { timeoutMs: 60_000, intervalMs: 300 };
const GROUP = "kueue.x-k8s.io";
const RBAC = "rbac.authorization.k8s.io";
// The prefix of the Cluster precedes the reader's name on the host.
const READER = `legation:system:serviceaccount:${KUEUE_NAMESPACE}:${KUEUE_ACCOUNT}`;
let kueue: MultiKueue;

const kind = (plural: string, name: string, namespaced: boolean): Resource<AnyObject> => {
  return { group: GROUP, version: "v1beta2", plural, kind: name, namespaced };
};
const multiKueueClusters = kind("multikueueclusters", "MultiKueueCluster", false);
const workloads = kind("workloads", "Workload", true);

function object(of: Resource<AnyObject>, metadata: object, spec: object): object {
  return { apiVersion: `${of.group}/${of.version}`, kind: of.kind, metadata, spec };
}

function worker(name: string): object {
  return object(multiKueueClusters, { name }, { clusterSource: { clusterProfileRef: { name } } });
}

beforeAll(async () => {
  await running().access();
  for (const cluster of [host, west]) {
    afterFile(() => removeKueue(cluster));
    await installKueue(cluster);
  }
  await createKueueAccount(host);
  const role = { apiGroup: RBAC, kind: "ClusterRole" };
  await applyAll(host, [
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata: { name: "kueue-workers" },
      rules: [
        {
          apiGroups: ["access.legation.dev"],
          resources: ["clusters/proxy"],
          resourceNames: ["west"],
          verbs: ["get", "create", "update", "patch", "delete"],
        },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "kueue-workers" },
      roleRef: { ...role, name: "kueue-workers" },
      subjects: [{ kind: "ServiceAccount", name: KUEUE_ACCOUNT, namespace: KUEUE_NAMESPACE }],
    },
  ]);
  await applyAll(west, [
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata: { name: "kueue-manager" },
      rules: [
        { apiGroups: [GROUP], resources: ["workloads", "workloads/status"], verbs: ["*"] },
        { apiGroups: ["batch"], resources: ["jobs", "jobs/status"], verbs: ["*"] },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "kueue-manager" },
      roleRef: { ...role, name: "kueue-manager" },
      subjects: [{ apiGroup: RBAC, kind: "User", name: READER }],
    },
  ]);
  await openMember(host, west, "west");
  kueue = await startMultiKueue(host);
  afterFile(() => kueue.stop());
  await applyAll(host, [worker("west"), worker("east")]);
}, 900_000);

async function active(name: string): Promise<object | undefined> {
  const found = await clients().host.find(multiKueueClusters, { name });
  return conditionsOf(statusOf(found))?.find(({ type }) => type === "Active");
}

test("Kueue reaches a member by its ClusterProfile, with its own account", async () => {
  await eventuallyPasses(async () => {
    expect(await active("west"), kueue.output().slice(-2000)).toMatchObject({ status: "True", reason: "Active" });
  }, patient);
  expect(await active("east")).toMatchObject({ status: "False", reason: "BadClusterProfile" });
});

test("Kueue gives the Workload of a Job to the member", async () => {
  const namespace = await freshNamespace([host, west], { prefix: "kueue" });
  const { host: onHost, west: inWest } = clients();
  const config = { apiGroup: GROUP, kind: "MultiKueueConfig", name: "workers" };
  await applyAll(host, [
    object(kind("multikueueconfigs", "MultiKueueConfig", false), { name: "workers" }, { clusters: ["west"] }),
    object(
      kind("admissionchecks", "AdmissionCheck", false),
      { name: "workers" },
      { controllerName: `${GROUP}/multikueue`, parameters: config },
    ),
  ]);
  const template = {
    spec: {
      restartPolicy: "Never",
      containers: [{ name: "main", image: "busybox", resources: { requests: { cpu: "1" } } }],
    },
  };
  const job = await onHost.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { namespace, name: "sweep", labels: { [`${GROUP}/queue-name`]: "queue" } },
    spec: { suspend: true, managedBy: `${GROUP}/multikueue`, template },
  });
  // Kueue's scheduler and Job controller do not run here; the test does their part on the host.
  const ref = { namespace, name: "job-sweep" };
  const owner = { apiVersion: "batch/v1", kind: "Job", name: "sweep", uid: job.metadata.uid, controller: true };
  const workload = object(
    workloads,
    { ...ref, ownerReferences: [owner] },
    { queueName: "queue", podSets: [{ name: "main", count: 1, template }] },
  );
  await onHost.create(workloads, workload as AnyObject);
  const at = new Date().toISOString();
  const reserved = {
    type: "QuotaReserved",
    status: "True",
    reason: "QuotaReserved",
    message: "",
    lastTransitionTime: at,
  };
  const admission = { clusterQueue: "queue", podSetAssignments: [{ name: "main", count: 1 }] };
  const check = { name: "workers", state: "Pending", message: "", lastTransitionTime: at };
  const status = { conditions: [reserved], admission, admissionChecks: [check] };
  await onHost.patch(workloads, ref, { type: "merge", body: { status } }, { subresource: "status" });
  const copy: Stored<AnyObject> = await eventually(() => inWest.find(workloads, ref), patient);
  expect(copy.metadata.labels).toMatchObject({ [`${GROUP}/multikueue-origin`]: "multikueue" });
});

test("Kueue loses a member whose door is closed, and finds it again", async () => {
  const patch = (access: object | null): Promise<unknown> =>
    clients().host.patch(clusters, { name: "west" }, { type: "merge", body: { spec: { access } } });
  await patch(null);
  await eventuallyPasses(
    async () => expect(await active("west")).toMatchObject({ reason: "BadClusterProfile" }),
    patient,
  );
  await patch({ prefix: "legation:" });
  await eventuallyPasses(async () => expect(await active("west")).toMatchObject({ reason: "Active" }), patient);
});
