import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  CLUSTER_ANNOTATION,
  DELEGATE_FINALIZER,
  DELEGATE_UID_ANNOTATION,
  HOST_LABEL,
  OWNER_ANNOTATION,
  PROXY_LABEL,
} from "../../src/api/keys.ts";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { credentialsFromKubeconfigText } from "../../src/kube/kubeconfig.ts";
import { namespaces, nodes, pods, secrets } from "../../src/kube/resources.ts";
import { kubeconfigText } from "../support/clusters/kubeconfig.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";

const clients = useClients();
const legation = useLegation();

let own: string;
let others: string;
/** An author with ClusterRole `admin` in namespace `own`, and no rights elsewhere. */
let tenant: ClusterClient;

beforeAll(async () => {
  const host = hostCluster();
  const all = [host, memberCluster("west"), memberCluster("east")];
  const labels = { "legation.dev/delegation": "annotated" };
  const make = (prefix: string): Promise<string> => freshNamespace(all, { prefix, labels, onFinished: afterFile });
  [own, others] = await Promise.all([make("tenant"), make("victim")]);
  await kubectl(host, ["-n", own, "create", "serviceaccount", "author"]);
  const author = `--serviceaccount=${own}:author`;
  await kubectl(host, ["-n", own, "create", "rolebinding", "author", "--clusterrole=admin", author]);
  const token = (await kubectl(host, ["-n", own, "create", "token", "author"])).trim();
  const text = kubeconfigText({ name: "host", server: host.server, caData: host.caData, user: "author", token });
  tenant = createClusterClient({
    cluster: "host",
    credentials: credentialsFromKubeconfigText(text, { allowExec: false, env: {}, source: "the tenant's" }),
  });
  afterFile(() => tenant.close());
  await clients().host.create(secrets, { metadata: { namespace: others, name: "door" }, data: { key: "eA==" } });
  for (const [client, namespace] of [
    [tenant, own],
    [clients().host, others],
  ] as const) {
    await client.create(pods, delegatedPod(namespace, "web", { annotations: { "legation.dev/clusters": "west" } }));
    await podThat(clients().host, namespace, "web", inPhase("Running"));
  }
});

const patched = (body: object, subresource?: string): Promise<unknown> =>
  tenant.patch(
    pods,
    { namespace: own, name: "web" },
    { type: "merge", body },
    subresource === undefined ? {} : { subresource },
  );
const created = (parts: { readonly metadata?: object; readonly spec?: object }): Promise<unknown> => {
  const pod = delegatedPod(own, "forged");
  const made: Pod = {
    ...pod,
    metadata: { ...pod.metadata, ...parts.metadata },
    spec: { containers: [], ...pod.spec, ...parts.spec },
  };
  return tenant.create(pods, made, { dryRun: true });
};
const annotated = (annotations: Readonly<Record<string, string>>): Promise<unknown> =>
  created({ metadata: { annotations } });
const asks = { "legation.dev/delegate": "true" };
const binding = (target: string): object => ({
  apiVersion: "v1",
  kind: "Binding",
  metadata: { namespace: own, name: "web" },
  target: { kind: "Node", name: target },
});

test.each([
  ["label", { labels: { [PROXY_LABEL]: null } }],
  ["finalizer", { finalizers: null }],
  ["annotations", { annotations: null }],
])("restores the %s of a proxy that a tenant removes", async (_, metadata) => {
  const before = await clients().host.get(pods, { namespace: own, name: "web" });
  await patched({ metadata });
  const after = await clients().host.get(pods, {
    namespace: own,
    name: "web",
  });
  expect(after.metadata.labels).toEqual(before.metadata.labels);
  expect(after.metadata.finalizers).toEqual(before.metadata.finalizers);
  const decision = [CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION].map((key) => after.metadata.annotations?.[key]);
  expect(decision).toEqual([expect.any(String), expect.any(String)]);
});

describe("a tenant with all rights in one namespace", () => {
  const uid = "22222222-2222-2222-2222-222222222222";
  test.each<[string, () => Promise<unknown>, RegExp]>([
    [
      "to move a running pod to another member",
      () => patched({ metadata: { annotations: { [CLUSTER_ANNOTATION]: "east" } } }),
      /changed by Legation's controller alone/,
    ],
    [
      "to give a running pod another delegate",
      () => patched({ metadata: { annotations: { [DELEGATE_UID_ANNOTATION]: uid } } }),
      /changed by Legation's controller alone/,
    ],
    [
      "to change the value of a proxy's mark",
      () => patched({ metadata: { labels: { [PROXY_LABEL]: "false" } } }),
      /changed by Legation's controller alone/,
    ],
    ["to create a pod on a node of the host", () => created({ spec: { nodeName: "host-node-0" } }), /nodeName/],
    [
      "to bind a pod to a virtual node",
      () => tenant.createSubresource(pods, { namespace: own, name: "web" }, "binding", binding("legation-east")),
      /cannot create resource|virtual node/,
    ],
    [
      "to write the status of a running pod",
      () => patched({ status: { phase: "Failed" } }, "status"),
      /cannot patch resource "pods\/status"/,
    ],
    [
      "to override the delegate's namespace",
      () => annotated({ ...asks, "legation.dev/overrides": overriding("/metadata/namespace", "kube-system") }),
      /is not inside \/spec\//,
    ],
    [
      "to override the delegate's owner",
      () =>
        annotated({ ...asks, "legation.dev/overrides": overriding("/metadata/annotations/legation.dev~1owner", "{}") }),
      /is not inside \/spec\//,
    ],
    [
      "to override the delegate's node",
      () => annotated({ ...asks, "legation.dev/overrides": overriding("/spec/nodeName", "n") }),
      /is Legation's or the member's/,
    ],
    [
      "to override the prototype of all objects",
      () => annotated({ ...asks, "legation.dev/overrides": overriding("/spec/__proto__/x", "y") }),
      /__proto__ is no field of a pod/,
    ],
    [
      "to change the namespace's mode",
      () =>
        tenant.patch(
          namespaces,
          { name: own },
          { type: "merge", body: { metadata: { labels: { "legation.dev/delegation": "all" } } } },
        ),
      /cannot patch resource "namespaces"/,
    ],
    [
      "to read the members' credentials",
      () => tenant.list(secrets, { namespace: "legation-system" }),
      /cannot list resource "secrets"/,
    ],
    [
      "to read another namespace's pods",
      () => tenant.get(pods, { namespace: others, name: "web" }),
      /cannot get resource "pods"/,
    ],
    [
      "to use a virtual node's kubelet API",
      () => tenant.raw({ method: "GET", path: "/api/v1/nodes/legation-west/proxy/pods" }),
      /cannot get resource "nodes\/proxy"/,
    ],
  ])("is refused %s", async (_what, attempt, refusal) => {
    await expect(attempt()).rejects.toThrow(refusal);
  });
});

/** Returns a name that no earlier attempt has used. */
function unique(prefix: string): string {
  return `${prefix}-${randomBytes(4).toString("hex")}`;
}

test("gives a tenant's pod nothing for the marks of another one, its delegate's uid included", async () => {
  const { host, west, east } = clients();
  const victim = await host.get(pods, { namespace: others, name: "web" });
  const delegate = await west.get(pods, { namespace: others, name: "web" });
  const name = unique("forged");
  const { labels, annotations } = victim.metadata;
  const owner = { cluster: "host", namespace: others, name: "web", uid: victim.metadata.uid };
  const forged = {
    [OWNER_ANNOTATION]: JSON.stringify(owner),
    "legation.dev/forwarded": '{"labels":[],"annotations":[]}',
    "legation.dev/proxy-uid": victim.metadata.uid,
  };
  await tenant.create(pods, {
    ...delegatedPod(own, name),
    metadata: {
      namespace: own,
      name,
      labels: { ...labels, app: name },
      annotations: { ...annotations, ...forged, "legation.dev/clusters": "east" },
      finalizers: [DELEGATE_FINALIZER],
    },
    spec: {
      ...delegatedPod(own, name).spec,
      containers: [{ name: "main", image: "work:1" }],
      schedulerName: "legation",
      nodeName: "legation-west",
    },
  });
  const made = await podThat(host, own, name, inPhase("Running"));
  const its = await east.get(pods, { namespace: own, name });
  expect(made.spec?.nodeName).toBe("legation-east");
  expect(made.metadata.annotations).toMatchObject({
    [CLUSTER_ANNOTATION]: "east",
    [DELEGATE_UID_ANNOTATION]: its.metadata.uid,
  });
  for (const key of Object.keys(forged)) expect(made.metadata.annotations).not.toHaveProperty([key]);
  expect(JSON.parse(its.metadata.annotations?.[OWNER_ANNOTATION] ?? "{}")).toMatchObject({ uid: made.metadata.uid });
  await tenant.delete(pods, { namespace: own, name }, { gracePeriodSeconds: 0 });
  await podGone(east, own, name);
  const still = await west.get(pods, { namespace: others, name: "web" });
  expect(still.metadata).toMatchObject({ uid: delegate.metadata.uid });
  expect(still.metadata.deletionTimestamp).toBeUndefined();
  expect((await host.get(pods, { namespace: others, name: "web" })).status).toEqual(victim.status);
});

test("takes nothing of a member for a pod that a tenant creates with a delegate's marks", async () => {
  const { host, west } = clients();
  const name = unique("posing");
  const later = unique("after-posing");
  const victim = await west.get(pods, { namespace: others, name: "web" });
  const hostId = (await host.get(namespaces, { name: "kube-system" })).metadata.uid;
  const owner = JSON.stringify({ cluster: "host", namespace: others, name: "web", uid: victim.metadata.uid });
  const made = {
    ...delegatedPod(own, name),
    metadata: {
      namespace: own,
      name,
      labels: { [HOST_LABEL]: hostId },
      annotations: { [OWNER_ANNOTATION]: owner },
    },
  };
  onTestFinished(async () => {
    await host.delete(pods, { namespace: own, name }, { gracePeriodSeconds: 0 }).catch(() => undefined);
  });
  // Admission may refuse it or ignore it.
  await tenant.create(pods, made).catch(() => undefined);
  // Any effect would be visible by the time a later pod runs.
  await host.create(pods, delegatedPod(own, later, { annotations: { "legation.dev/clusters": "west" } }));
  await podThat(host, own, later, inPhase("Running"));
  expect(await west.find(pods, { namespace: own, name })).toBeUndefined();
  const after = await west.get(pods, { namespace: others, name: "web" });
  expect(after.metadata.uid).toBe(victim.metadata.uid);
  expect(after.metadata.deletionTimestamp).toBeUndefined();
});

test("copies no Secret of another namespace for a pod, whatever name it uses", async () => {
  const name = unique("thief");
  await expect(
    tenant.create(
      pods,
      delegatedPod(own, name, {
        spec: {
          containers: [{ name: "main", image: "work:1" }],
          volumes: [{ name: "a", secret: { secretName: `../${others}/door` } }],
        },
      }),
    ),
  ).resolves.toBeDefined();
  const { host, west, east } = clients();
  await podThat(
    host,
    own,
    name,
    ({ status }) => status?.conditions?.some(({ message }) => message?.includes("not found")) === true,
  );
  for (const member of [west, east])
    expect((await member.list(secrets, { namespace: own, labelSelector: "legation.dev/copy" })).items).toEqual([]);
});

describe("a virtual node's kubelet API", () => {
  test.each([
    "/containerLogs/OWN/..%2f..%2fOTHERS%2fpods%2fweb/main",
    "/containerLogs/OWN/web%2f..%2f..%2f..%2fsecrets/main",
    "/containerLogs/OWN%2f..%2fOTHERS/web/main",
    "/exec/OWN/..%2fweb/main?command=id&output=1",
    "/containerLogs/OWN/web/main%3ftailLines=1%26x/",
    "/run/OWN/web/main",
    "/../OWN",
  ])("does not leave the pod's path with %s", async (path) => {
    const port = await eventually(
      async () =>
        (await clients().host.find(nodes, { name: "legation-west" }))?.status?.daemonEndpoints?.kubeletEndpoint?.Port,
    );
    const status = await asApiServer(port, path.replaceAll("OWN", own).replaceAll("OTHERS", others));
    expect([400, 404, 405]).toContain(status);
    expect(legation().controller.pid).toBeDefined();
  });
});

function overriding(path: string, value: unknown): string {
  return JSON.stringify([{ patch: [{ op: "add", path, value }] }]);
}

/** Requests a virtual node with the API server's certificate, which may read everything. */
function asApiServer(port: number, path: string): Promise<number | undefined> {
  const read = (file: string): string => readFileSync(join(hostCluster().directory, "pki", file), "utf8");
  const identity = { cert: read("kubelet-client.crt"), key: read("kubelet-client.key"), rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, agent: false, ...identity }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on("error", reject);
    asked.end();
  });
}
