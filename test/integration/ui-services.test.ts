import { afterAll, beforeAll, expect, test } from "vitest";
import { RELAY_ANNOTATION } from "../../src/api/keys.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { applyAll } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { installRelay } from "../support/legation/relay.ts";
import { makeScene, type Scene } from "../support/services/scene.ts";
import { accessibilityProblems, type OpenPage, openPage } from "../support/ui/browser.ts";

useLegation();
const clients = useClients();
let scene: Scene;
let ui: OpenPage;

beforeAll(async () => {
  await installRelay(hostCluster(), ["192.0.2.1"]);
  scene = await makeScene(clients(), afterFile);
  const labels = { app: "web" };
  const annotations = { "legation.dev/delegate": "true", "legation.dev/clusters": "west" };
  const spec = { containers: [{ name: "web", image: "registry.example/web:1" }], automountServiceAccountToken: false };
  await applyAll(hostCluster(), [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: scene.namespace },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels, annotations }, spec } },
    },
  ]);
  await scene.service("web");
  await scene.service("far-web", { selector: {} }, { annotations: { [RELAY_ANNOTATION]: "web" } });
  await scene.run("other", labels, "east");
  ui = await openPage(hostCluster().kubeconfig);
}, 120_000);
afterAll(() => ui?.close());

test("the page shows from where a Service reaches which pods, from its pods, their workload and their namespace on", async () => {
  const { page, show, errors } = ui;
  await show(`#/workloads/Deployment/${scene.namespace}/web`);
  await page.getByRole("link", { name: "web", exact: true }).click();
  await page.getByRole("heading", { name: "Service/web" }).waitFor();
  await page.getByText("ClusterIP, 80/TCP; 2 of 2 endpoints ready").waitFor();
  await page.getByRole("row", { name: /^west 1 0 its own east: the two are in no network together/ }).waitFor();
  await page.getByRole("row", { name: /^web-.* Running/ }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page
    .getByRole("row", { name: /^other/ })
    .getByRole("link")
    .first()
    .click();
  await page.getByRole("link", { name: "far-web" }).click();
  await page.getByText(/relayed to web by 1 replica of legation relay; 2 of 2 endpoints ready; see web/).waitFor();
  await page.getByRole("row", { name: /^this cluster 0 0 east \(relay\), west \(relay\)/ }).waitFor();
  await page.getByRole("link", { name: scene.namespace }).click();
  await page.getByRole("row", { name: "far-web ClusterIP, 80/TCP, relayed to web 2 of 2" }).waitFor();
  await show(`#/find?q=service ${scene.namespace} far`);
  await page.getByRole("row", { name: `Service ${scene.namespace} far-web` }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(errors).toEqual([]);
});
