import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { PodSpec } from "../../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import { endpointSlices, pods, services } from "../../../../../src/kube/resources.ts";
import { startClusters } from "../../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../../support/clusters/types.ts";
import { delegatedPod } from "../../../../support/delegated/pods.ts";
import { ingressTo, runTraefik } from "../../../../support/engines/traefik.ts";
import { afterFile, cleanUpFile } from "../../../../support/harness/after-file.ts";
import { clientOf } from "../../../../support/harness/clients.ts";
import { applyAll, kubectl } from "../../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../../support/harness/namespace.ts";
import { inPhase, podThat } from "../../../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../../../support/harness/wait.ts";
import { legationOn } from "../../../../support/legation/process.ts";
import { startLegation } from "../../../../support/legation/start.ts";

// Kubernetes' own kube-proxy and CoreDNS on real nodes. Pods of host, west and east reach each other; those of north reach nobody.

const JOINED = ["host", "west", "east"] as const;
const ALL = [...JOINED, "north"] as const;
type Name = (typeof ALL)[number];

const PATIENT = { timeoutMs: 120_000, intervalMs: 500 };
const IMAGE = "localhost/busybox:1";
const RUNS = "trap 'exit 0' TERM; mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www; sleep 3600 & wait";

let clusters: Clusters;
let client: ClusterClient;

beforeAll(async () => {
  const joined = { realNode: true, serviceNetwork: "joined" } as const;
  const monitor = ["--node-monitor-period=1s", "--node-monitor-grace-period=12s"];
  clusters = await startClusters({
    names: ALL,
    clusters: {
      host: { ...joined, controllerManagerFlags: monitor },
      west: joined,
      east: joined,
      north: { realNode: true, serviceNetwork: "alone" },
    },
    onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
  });
  afterFile(() => clusters.stop());
  const host = clusters.get("host");
  const members = Object.fromEntries(ALL.slice(1).map((name) => [name, clusters.get(name)]));
  const running = await startLegation({ host, members, restart: true });
  afterFile(() => running.stop());
  const settings = JSON.stringify({ data: { network: "corp" } });
  await kubectl(host, ["-n", "legation-system", "patch", "configmap", "legation", `--patch=${settings}`]);
  await running.controller.stop();
  await running.controller.start();
  const probe = { periodSeconds: 1, timeoutSeconds: 4, failureThreshold: 2 };
  for (const name of Object.keys(members)) {
    const spec = { probe, network: name === "north" ? null : "corp" };
    await kubectl(host, [
      "patch",
      "clusters.legation.dev",
      name,
      "--type=merge",
      `--patch=${JSON.stringify({ spec })}`,
    ]);
  }
  client = clientOf(host);
  afterFile(() => client.close());
  return cleanUpFile;
}, 900_000);

/** A namespace in all clusters with a pod `client-CLUSTER` in each. */
async function makeNamespace(): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = ALL.map((name) => clusters.get(name));
  const namespace = await freshNamespace(all, { prefix: "joined", labels, onFinished: onTestFinished });
  await Promise.all(ALL.map((name) => run(namespace, `client-${name}`, name, { app: "client" })));
  return namespace;
}

const spec: PodSpec = {
  automountServiceAccountToken: false,
  terminationGracePeriodSeconds: 1,
  // A lost member's pods stay for the test's time.
  tolerations: [{ operator: "Exists", effect: "NoExecute" }],
  containers: [
    {
      name: "main",
      image: IMAGE,
      command: ["sh", "-c", RUNS],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    },
  ],
};

async function run(namespace: string, name: string, where: Name, labels: Record<string, string>): Promise<void> {
  const pod = delegatedPod(namespace, name, { labels, spec, annotations: { "legation.dev/clusters": where } });
  const ownPod = { ...pod, metadata: { namespace, name, labels } };
  await client.create(pods, where === "host" ? ownPod : pod);
  await podThat(client, namespace, name, inPhase("Running"), PATIENT);
}

/** Runs a command in the cluster's client pod. */
function inClient(namespace: string, { name, ...cluster }: Cluster, command: string): Promise<string> {
  const args = ["exec", "-n", namespace, `client-${name}`, "--", "sh", "-c", command];
  return kubectl({ name, ...cluster }, args);
}

/**
 * Shell that prints the name of the pod that answers. The static wget of the image cannot resolve names. `pause` is run before nc ends
 * its direction.
 */
function get(name: string, port = 8080, pause = ":"): string {
  return `{ printf 'GET / HTTP/1.0\\r\\n\\r\\n'; ${pause}; } | nc -w 2 ${name} ${port} | tail -n 1`;
}

/** Names of the pods that answer to a Service's name, and how many calls failed. */
async function answers(
  namespace: string,
  from: Name,
  service: string,
  pause?: string,
): Promise<Record<string, number>> {
  const one = `said=$(${get(service, 80, pause)}); echo "\${said:-failed}"`;
  const said = await inClient(namespace, clusters.get(from), `for i in $(seq 24); do ${one}; done`);
  const counts: Record<string, number> = {};
  for (const name of said.trim().split("\n")) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

async function leadsTo(
  namespace: string,
  from: Name,
  service: string,
  names: readonly string[],
  pause?: string,
): Promise<void> {
  await eventuallyPasses(async () => {
    expect(Object.keys(await answers(namespace, from, service, pause)).sort(), `${service} from ${from}`).toEqual(
      names,
    );
  }, PATIENT);
}

function service(namespace: string, name: string, more: object = {}): Promise<unknown> {
  return client.create(services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace },
    spec: { selector: { app: name }, ports: [{ name: "http", port: 80, targetPort: 8080 }], ...more },
  });
}

test("an ordinary Service name leads from each joined cluster to the pods of all of them, and from others to their own", async () => {
  const namespace = await makeNamespace();
  await service(namespace, "web");
  await Promise.all(JOINED.map((name) => run(namespace, `web-${name}`, name, { app: "web" })));
  const joined = JOINED.map((name) => `web-${name}`).sort();
  for (const from of JOINED) await leadsTo(namespace, from, "web", joined);
  // The name is there once north has a pod of the Service: the host's name for it leads nowhere from here.
  await service(namespace, "own");
  await run(namespace, "own-north", "north", { app: "own" });
  await leadsTo(namespace, "north", "own", ["own-north"]);
  expect(await answers(namespace, "north", "web")).toEqual({ failed: 24 });
  const west = await podThat(client, namespace, "web-west", inPhase("Running"), PATIENT);
  const call = get(west.status?.podIP ?? "");
  expect(await inClient(namespace, clusters.get("east"), call)).toBe("web-west\n");
  expect(await inClient(namespace, clusters.get("north"), call)).toBe("");
});

test("the names of a StatefulSet's pods lead to them in whichever member they are, also after they moved", async () => {
  const namespace = await makeNamespace();
  await service(namespace, "web", { clusterIP: "None" });
  const labels = { app: "web" };
  const annotations = (where: string): object => ({
    "legation.dev/delegate": "true",
    "legation.dev/clusters": where,
  });
  const set = (where: string): object => ({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "web", namespace },
    spec: {
      serviceName: "web",
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels, annotations: annotations(where) }, spec },
    },
  });
  for (const where of ["west", "east"]) {
    await applyAll(clusters.get("host"), [set(where)]);
    const { status } = await podThat(
      client,
      namespace,
      "web-0",
      (pod) => inPhase("Running")(pod) && pod.metadata.annotations?.["legation.dev/cluster"] === where,
      PATIENT,
    );
    for (const from of JOINED) {
      await eventuallyPasses(async () => {
        const call = `${get("web-0.web")}; nslookup web-0.web.${namespace}.svc.cluster.local`;
        const said = await inClient(namespace, clusters.get(from), call);
        expect(said).toContain("web-0\n");
        expect(said).toContain(status?.podIP);
      }, PATIENT);
    }
  }
});

test("a client keeps its pod by session affinity, and its own cluster's pods are preferred where the Service says so", async () => {
  const namespace = await makeNamespace();
  await service(namespace, "web", { sessionAffinity: "ClientIP" });
  await service(namespace, "near", { selector: { app: "web" }, trafficDistribution: "PreferSameNode" });
  await Promise.all((["west", "east"] as const).map((name) => run(namespace, `web-${name}`, name, { app: "web" })));
  for (const from of JOINED) {
    await eventuallyPasses(async () => {
      const counts = await answers(namespace, from, "web");
      expect(Object.values(counts), `web from ${from}`).toEqual([24]);
      expect(counts).not.toHaveProperty("failed");
    }, PATIENT);
  }
  // The host has no pod of it.
  await leadsTo(namespace, "host", "near", ["web-east", "web-west"]);
  for (const from of ["west", "east"] as const) await leadsTo(namespace, from, "near", [`web-${from}`]);
  await client.delete(pods, { namespace, name: "web-west" });
  await leadsTo(namespace, "west", "near", ["web-east"]);
});

test("an Ingress controller of the host leads to a Service's pods in whichever member they are", async () => {
  const namespace = await makeNamespace();
  await service(namespace, "web");
  await Promise.all((["west", "east"] as const).map((name) => run(namespace, `web-${name}`, name, { app: "web" })));
  await runTraefik(clusters.get("host"), namespace);
  await applyAll(clusters.get("host"), [ingressTo(namespace, { name: "web", port: { name: "http" } })]);
  // A client that ends its direction has lost interest, for Traefik.
  const pause = "sleep 0.2";
  await leadsTo(namespace, "host", "traefik", ["web-east", "web-west"], pause);
  await client.delete(pods, { namespace, name: "web-west" });
  await leadsTo(namespace, "host", "traefik", ["web-east"], pause);
});

test("a Service without a selector leads by UDP from each joined cluster to where its slice says", async () => {
  const namespace = await makeNamespace();
  const west = clusters.get("west");
  const jsonPath = "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}";
  const nameServer = await kubectl(west, ["get", "nodes", "-o", jsonPath]);
  const api = await kubectl(west, ["get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
  const ports = [{ name: "dns", port: 53, protocol: "UDP" }];
  await client.create(services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "names", namespace },
    spec: { ports },
  });
  await client.create(endpointSlices, {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "names", namespace, labels: { "kubernetes.io/service-name": "names" } },
    addressType: "IPv4",
    endpoints: [{ addresses: [nameServer] }],
    ports,
  });
  for (const from of JOINED) {
    await eventuallyPasses(async () => {
      const said = await inClient(namespace, clusters.get(from), "nslookup kubernetes.default.svc.cluster.local names");
      expect(said, from).toContain(api);
    }, PATIENT);
  }
});

test("a member that is cut off takes its endpoints along, and brings them back", async () => {
  const namespace = await makeNamespace();
  await service(namespace, "web");
  await Promise.all((["west", "east"] as const).map((name) => run(namespace, `web-${name}`, name, { app: "web" })));
  for (const from of JOINED) await leadsTo(namespace, from, "web", ["web-east", "web-west"]);
  const west = clusters.get("west");
  onTestFinished(() => west.mend());
  await west.proxy.cut();
  for (const from of ["host", "east"] as const) await leadsTo(namespace, from, "web", ["web-east"]);
  const examined = (): Promise<string> =>
    legationOn(clusters.get("host"), "doctor", "--members=west").then(({ stdout }) => stdout);
  const endpoints = "west: the endpoints of other clusters in network corp";
  expect(await examined()).toMatch(new RegExp(`WARN +${endpoints} are as they were \\d+s ago`));
  await west.proxy.heal();
  for (const from of JOINED) await leadsTo(namespace, from, "web", ["web-east", "web-west"]);
  expect(await examined()).toMatch(new RegExp(`OK +${endpoints} follow their pods`));
  const labelSelector = "kubernetes.io/service-name=web,endpointslice.kubernetes.io/managed-by=legation.dev";
  const east = clientOf(clusters.get("east"));
  onTestFinished(() => east.close());
  expect((await east.list(endpointSlices, { namespace, labelSelector })).items).toHaveLength(1);
});
