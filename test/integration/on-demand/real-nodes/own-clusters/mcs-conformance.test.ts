import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { Namespace } from "../../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import { namespaces } from "../../../../../src/kube/resources.ts";
import { realClock } from "../../../../../src/runtime/clock.ts";
import { Reflector } from "../../../../../src/runtime/reflector.ts";
import { SILENT_LOG } from "../../../../../src/telemetry/silent-log.ts";
import { staticBusybox } from "../../../../support/clusters/node/possible.ts";
import { startClusters } from "../../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../../support/clusters/types.ts";
import { afterFile, cleanUpFile } from "../../../../support/harness/after-file.ts";
import { clientOf } from "../../../../support/harness/clients.ts";
import { applyAll, kubectl } from "../../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../../support/harness/namespace.ts";
import { eventuallyPasses } from "../../../../support/harness/wait.ts";
import { legation } from "../../../../support/legation/cli.ts";
import { startWithMcs } from "../../../../support/services/mcs-clusters.ts";
import {
  installReleasedMcsApi,
  LEFT_OUT,
  runConformance,
  writeConformanceImages,
} from "../../../../support/services/mcs-conformance.ts";

// The conformance suite of the Multi-Cluster Services API on clusters with kube-proxy and real nodes, whose pod networks are joined.

const MEMBERS = ["west", "east"] as const;
const LABELS = { "legation.dev/delegation": "annotated" };
const PATIENT = { timeoutMs: 120_000, intervalMs: 500 };

let clusters: Clusters;
let all: readonly Cluster[];
let host: ClusterClient;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "mcs-conformance-"));
  const images = join(directory, "images.tar");
  const busybox = staticBusybox();
  if (busybox === undefined) throw new Error("The suite's images need a static busybox.");
  writeConformanceImages(images, busybox);
  const joined = { realNode: true, serviceNetwork: "joined", images: [images] } as const;
  clusters = await startClusters({
    names: ["host", ...MEMBERS],
    clusters: { host: joined, west: joined, east: joined },
    onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
  });
  afterFile(() => clusters.stop());
  all = ["host", ...MEMBERS].map((name) => clusters.get(name));
  for (const cluster of all) await installReleasedMcsApi(cluster);
  await startWithMcs(clusters, MEMBERS);
  host = clientOf(clusters.get("host"));
  afterFile(() => host.close());
  return cleanUpFile;
}, 900_000);

/** Labels the suite's namespaces: those alone are shared by clusters. */
function delegateNamespaces(): void {
  const label = async ({ metadata: { name } }: Namespace & { metadata: { name: string } }): Promise<void> => {
    await host.patch(namespaces, { name }, { type: "merge", body: { metadata: { labels: LABELS } } });
  };
  const reflector = new Reflector<Namespace>({
    client: host,
    resource: namespaces,
    clock: realClock,
    log: SILENT_LOG,
    onEvent: ({ type, object }) => {
      if (type === "added" && object.metadata.name.startsWith("mcs-conformance-")) void label(object);
    },
  });
  reflector.start();
  onTestFinished(() => reflector.stop());
}

test("passes the conformance suite of the API's authors, but for names of pods by their cluster", async () => {
  delegateNamespaces();
  const { results, specs, output } = await runConformance(
    ["west", "east", "host"].map((name) => clusters.get(name)),
    directory,
  );
  const run = results.map(({ spec }) => spec);
  const leftOut = specs.filter((spec) => !run.includes(spec));
  const reasonOf = (spec: string): string | undefined =>
    Object.entries(LEFT_OUT).find(([text]) => new RegExp(text).test(spec))?.[1];
  for (const { spec, outcome, seconds } of results) process.stderr.write(`${outcome} (${seconds} s): ${spec}\n`);
  for (const spec of leftOut) process.stderr.write(`left out: ${spec}: ${reasonOf(spec)}\n`);
  const failed = results.filter(({ outcome }) => outcome !== "passed");
  expect(failed, output.slice(-20_000)).toEqual([]);
  expect(leftOut.filter((spec) => reasonOf(spec) === undefined)).toEqual([]);
  expect(results.length).toBeGreaterThanOrEqual(26);
}, 2_700_000);

test("an import's address leads from each cluster to the pods of all that export", async () => {
  const namespace = await freshNamespace(all, { prefix: "mcs", labels: LABELS, onFinished: onTestFinished });
  const answers = "trap 'exit 0' TERM; mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www; sleep 3600 & wait";
  const pod = (name: string, app: string): object => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { app } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "main", image: "localhost/busybox:1", command: ["sh", "-c", answers] }],
    },
  });
  for (const cluster of all) {
    const { name } = cluster;
    const spec = { selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: 8080 }] };
    const metadata = { name: "web", namespace };
    const exported =
      name === "host" ? [] : [{ apiVersion: "multicluster.x-k8s.io/v1beta1", kind: "ServiceExport", metadata }];
    await applyAll(cluster, [
      pod(`web-${name}`, "web"),
      pod("client", "client"),
      { apiVersion: "v1", kind: "Service", metadata, spec },
      ...exported,
    ]);
  }
  for (const cluster of all) {
    await eventuallyPasses(async () => {
      const address = ["get", "serviceimport", "web", "-n", namespace, "-o", "jsonpath={.spec.ips[0]}"];
      const call = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${await kubectl(cluster, address)} 80 | tail -n 1`;
      const calls = `for i in $(seq 24); do ${call}; done`;
      const said = await kubectl(cluster, ["exec", "-n", namespace, "client", "--", "sh", "-c", calls]);
      // The host has pods of that Service, too, and does not export it.
      expect([...new Set(said.trim().split("\n"))].sort(), cluster.name).toEqual(["web-east", "web-west"]);
    }, PATIENT);
  }
});

test("a member that leaves, and the host without Legation, have no imports any more", async () => {
  const namespace = await freshNamespace(all, { prefix: "mcs", labels: LABELS, onFinished: onTestFinished });
  const onHost = `--kubeconfig=${clusters.get("host").kubeconfig}`;
  const metadata = { name: "web", namespace };
  const spec = { selector: { app: "web" }, ports: [{ port: 80 }] };
  await applyAll(clusters.get("west"), [
    { apiVersion: "v1", kind: "Service", metadata, spec },
    { apiVersion: "multicluster.x-k8s.io/v1beta1", kind: "ServiceExport", metadata },
  ]);
  const madeIn = (cluster: Cluster): Promise<string> => {
    const kinds = "serviceimports,services,endpointslices";
    return kubectl(cluster, ["get", kinds, "-n", namespace, "-l", "legation.dev/host", "-o", "name"]);
  };
  const ofImport = "serviceimport.multicluster.x-k8s.io/web\nservice/clusterset-web\n";
  for (const cluster of all) {
    await eventuallyPasses(async () => expect(await madeIn(cluster), cluster.name).toBe(ofImport), PATIENT);
  }
  for (const name of MEMBERS) {
    await legation(["unjoin", name, onHost, `--member-kubeconfig=${clusters.get(name).kubeconfig}`]);
    expect(await madeIn(clusters.get(name)), name).toBe("");
  }
  await legation(["uninstall", onHost]);
  await eventuallyPasses(async () => expect(await madeIn(clusters.get("host"))).toBe(""), PATIENT);
});
