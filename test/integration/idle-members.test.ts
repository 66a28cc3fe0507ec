import { expect, test } from "vitest";
import { CLUSTERS_ANNOTATION, COPY_LABEL, COPY_LABEL_VALUE } from "../../src/api/keys.ts";
import { configMaps, pods } from "../../src/kube/resources.ts";
import { freePort } from "../support/clusters/ports.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { metricsOf } from "../support/harness/metrics-of.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";

const port = await freePort();
const legation = useLegation({ controllerFlags: [`--health-listen=127.0.0.1:${port}`] });
const clients = useClients();
const labels = { "legation.dev/delegation": "annotated" };
const patient = { timeoutMs: 60_000 };

async function watchesOpened(cluster: string): Promise<number> {
  return (await metricsOf(port))(`legation_watches_opened_total{cluster="${cluster}",resource="configmaps"}`) ?? 0;
}

test("watches a member's ConfigMaps from the first copy on, and finds an orphaned copy when it starts", async () => {
  const { host, west, east } = clients();
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const namespace = await freshNamespace(all, { prefix: "idle", labels });
  const { controller } = legation();
  // Copies of earlier files go ten seconds after their last user.
  const labelSelector = `${COPY_LABEL}=${COPY_LABEL_VALUE}`;
  for (const member of [west, east]) {
    await eventually(async () => (await member.list(configMaps, { labelSelector })).items.length === 0, patient);
  }
  await controller.stop();
  await controller.start();
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
