import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../support/clusters/types.ts";
import { installPrometheusOperator } from "../../../support/engines/prometheus-operator.ts";
import { cleanUpFile } from "../../../support/harness/after-file.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { CHART, type Helm, helmOn, IMAGE_VALUES } from "../../../support/legation/chart.ts";
import { legation } from "../../../support/legation/cli.ts";
import { rolledOut, useImageHost, waitLongForWebhooks } from "../../../support/legation/image-clusters.ts";
import { annotatedNamespace, whileAdmitting } from "../../../support/webhook/admission.ts";

// A release by Helm 3, which Helm 4 takes over. The tests are the life of one release.
const VALUES = { ...IMAGE_VALUES, clusterName: "charted", monitoring: { podMonitors: true, rules: true } };
const MONITORS = "podmonitors.monitoring.coreos.com,prometheusrules.monitoring.coreos.com";

whereRealNodesRun(() => {
  let host: Cluster;
  let namespace: string;
  const run = (...args: string[]): Promise<string> => kubectl(host, args, { timeoutMs: 250_000 });
  const replicas = (): Promise<string> =>
    run("-n", "legation-system", "get", "deployments", "-o", "jsonpath={.items[*].spec.replicas}");
  const bundles = (): Promise<string> =>
    run("get", "mutatingwebhookconfiguration/legation", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}");

  async function settled(): Promise<void> {
    await waitLongForWebhooks(host);
    await rolledOut(host, "webhook", "controller");
  }

  beforeAll(async () => {
    host = await useImageHost();
    await installPrometheusOperator(host);
    namespace = await annotatedNamespace(host, "charted");
  }, 900_000);
  afterAll(cleanUpFile);

  test("installs Legation, whose webhook makes proxies", async () => {
    const install = ["install", "legation", CHART, "--create-namespace", "--values=-"];
    await helmOn(host, install, { values: VALUES, program: "helm3" });
    await settled();
    await whileAdmitting(host, namespace, async () => {});
    expect((await run("get", MONITORS, "-A", "-o", "name")).trim().split("\n")).toHaveLength(3);
    const { host: versions } = JSON.parse(await legation(["version", `--kubeconfig=${host.kubeconfig}`, "-o", "json"]));
    expect(versions.legation).toMatchObject({ hostName: "charted", installer: "Helm" });
  }, 600_000);

  test.each<[string, Helm, number]>([
    ["Helm 3", "helm3", 1],
    ["Helm 4, which takes it over", "helm", 2],
  ])(
    "is upgraded by %s, and keeps the webhook's certificate",
    async (_by, program, wanted) => {
      const before = await bundles();
      expect(before).not.toBe("");
      const upgrade = ["upgrade", "legation", CHART, "--reset-then-reuse-values", "--values=-"];
      await whileAdmitting(host, namespace, async () => {
        await helmOn(host, upgrade, { values: { controller: { replicas: wanted } }, program });
        await settled();
      });
      expect(await replicas()).toBe(`${wanted} 2`);
      expect(await bundles()).toBe(before);
    },
    600_000,
  );

  test("is uninstalled by Helm 3, and leaves the definitions", async () => {
    const kinds = `deployments,clusterroles,mutatingwebhookconfigurations,validatingadmissionpolicies,${MONITORS}`;
    const owned = (): Promise<string> => run("get", kinds, "-A", "-lapp.kubernetes.io/managed-by=Helm", "-o", "name");
    expect(await owned()).toContain("podmonitor.monitoring.coreos.com/legation-webhook\n");
    await helmOn(host, ["uninstall", "legation", "--wait"], { program: "helm3" });
    expect(await owned()).toBe("");
    await run("get", "customresourcedefinition/clusters.legation.dev");
  }, 300_000);
});
