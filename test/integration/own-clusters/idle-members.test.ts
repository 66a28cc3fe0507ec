import { beforeAll, expect, test } from "vitest";
import { CLUSTERS_ANNOTATION } from "../../../src/api/keys.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { configMaps, pods } from "../../../src/kube/resources.ts";
import { freePort } from "../../support/clusters/ports.ts";
import { startClusters } from "../../support/clusters/start.ts";
import type { Clusters } from "../../support/clusters/types.ts";
import { delegatedPod } from "../../support/delegated/pods.ts";
import { afterFile, cleanUpFile } from "../../support/harness/after-file.ts";
import { clientOf } from "../../support/harness/clients.ts";
import { metricsOf } from "../../support/harness/metrics-of.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../../support/harness/pods-of.ts";
import { eventually } from "../../support/harness/wait.ts";
import { type Legation, startLegation } from "../../support/legation/start.ts";

// Shared clusters have copies that earlier files left, which keep their watches open.

const labels = { "legation.dev/delegation": "annotated" };
const patient = { timeoutMs: 60_000 };

let port: number;
let clusters: Clusters;
let legation: Legation;
let host: ClusterClient;
let west: ClusterClient;

beforeAll(async () => {
  port = await freePort();
  clusters = await startClusters({
    names: ["host", "west", "east"],
    clusters: { host: { nodes: [] }, west: { nodes: [{ count: 1 }] }, east: { nodes: [{ count: 1 }] } },
  });
  afterFile(() => clusters.stop());
  legation = await startLegation({
    host: clusters.get("host"),
    members: { west: clusters.get("west"), east: clusters.get("east") },
    controllerFlags: [`--health-listen=127.0.0.1:${port}`],
  });
  afterFile(() => legation.stop());
  host = clientOf(clusters.get("host"));
  west = clientOf(clusters.get("west"));
  for (const client of [host, west]) afterFile(() => client.close());
  return cleanUpFile;
});

async function watchesOpened(cluster: string): Promise<number> {
  return (await metricsOf(port))(`legation_watches_opened_total{cluster="${cluster}",resource="configmaps"}`) ?? 0;
}

test("watches a member's ConfigMaps from the first copy on, and finds an orphaned copy when it starts", async () => {
  const all = ["host", "west", "east"].map((name) => clusters.get(name));
  const namespace = await freshNamespace(all, { prefix: "idle", labels });
  const { controller } = legation;
  for (const cluster of ["west", "east"]) {
    const lists = `legation_api_requests_total{cluster="${cluster}",verb="list",resource="configmaps",code="200"}`;
    await eventually(async () => ((await metricsOf(port))(lists) ?? 0) > 0, patient);
    expect(await watchesOpened(cluster)).toBe(0);
  }

  const settings = { namespace, name: "settings" };
  await host.create(configMaps, { metadata: settings, data: { a: "b" } });
  const containers = [{ name: "main", image: "work:1", envFrom: [{ configMapRef: { name: "settings" } }] }];
  const annotations = { [CLUSTERS_ANNOTATION]: "west" };
  const spec = { automountServiceAccountToken: false, containers };
  await host.create(pods, delegatedPod(namespace, "web", { annotations, spec }));
  await podThat(host, namespace, "web", inPhase("Running"), patient);
  expect(await watchesOpened("west")).toBe(1);
  expect(await watchesOpened("east")).toBe(0);

  await host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
  await podGone(host, namespace, "web");
  // The copy goes ten seconds after its last user: this controller is gone by then.
  await controller.stop("SIGKILL");
  expect(await west.find(configMaps, settings)).toBeDefined();
  await controller.start();
  await eventually(async () => (await west.find(configMaps, settings)) === undefined, patient);
  expect(await watchesOpened("east")).toBe(0);
});
