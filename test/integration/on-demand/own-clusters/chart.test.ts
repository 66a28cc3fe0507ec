import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { FindingGroup } from "../../../../src/cli/explain/installation/finding.ts";
import type { Cluster } from "../../../support/clusters/types.ts";
import { cleanUpFile } from "../../../support/harness/after-file.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { bindClusterRole } from "../../../support/legation/access.ts";
import { CHART, helmOn, IMAGE_VALUES } from "../../../support/legation/chart.ts";
import { legation, runCli } from "../../../support/legation/cli.ts";
import { LEGATION_IMAGE } from "../../../support/legation/image.ts";
import {
  type ImageClusters,
  rolledOut,
  startImageClusters,
  waitLongForWebhooks,
} from "../../../support/legation/image-clusters.ts";
import { podManifest } from "../../../support/streams/pods.ts";
import { openTeamPage, resolveApi } from "../../../support/ui/team-page.ts";

// Legation as Helm deploys it: pods on a node of the host, from the image of a release. The tests are the life of one release.
const SYSTEM = "legation-system";
const VALUES = {
  clusterName: "charted",
  ...IMAGE_VALUES,
  networkPolicy: { enabled: true },
  ui: { enabled: true },
};
// The definitions stay.
const DEFINITIONS = ["clusters.legation.dev", "delegatedtypes.legation.dev", "placementdefaults.legation.dev"];

whereRealNodesRun(() => {
  let clusters: ImageClusters | undefined;
  let host: Cluster;
  let west: Cluster;
  let namespace: string;
  const run = (...args: string[]): Promise<string> => kubectl(host, args, { timeoutMs: 250_000 });

  const runHelm = (args: readonly string[], values: object = VALUES): Promise<string> => helmOn(host, args, { values });

  async function install(): Promise<string> {
    const notes = await runHelm(["install", "legation", CHART, "--create-namespace", "--values=-"]);
    await waitLongForWebhooks(host);
    await rolledOut(host, "webhook", "controller", "ui");
    return notes;
  }

  async function runPod(name: string): Promise<void> {
    const script = `echo hello from ${name}; trap 'exit 0' TERM; sleep 600 & wait`;
    await kubectl(host, ["apply", "-n", namespace, "-f", "-"], {
      input: podManifest(name, [{ name: "main", script }]),
    });
    await run("-n", namespace, "wait", `pod/${name}`, "--for=condition=Ready", "--timeout=150s");
  }

  const phaseOf = (name: string): Promise<string> =>
    run("-n", namespace, "get", "pod", name, "-o", "jsonpath={.status.phase} {.spec.nodeName}");
  const bundles = (): Promise<string> =>
    run("get", "mutatingwebhookconfiguration/legation", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}");
  const owned = (): Promise<string> =>
    run(
      "get",
      "deployments,services,serviceaccounts,clusterroles,clusterrolebindings,validatingadmissionpolicies,mutatingwebhookconfigurations,networkpolicies",
      "-A",
      "-lapp.kubernetes.io/part-of=legation",
      "-o",
      "name",
    );

  beforeAll(async () => {
    clusters = await startImageClusters();
    ({ host, west } = clusters);
    await resolveApi(host);
  }, 600_000);
  afterAll(async () => {
    if (host !== undefined) await cleanUpFile();
    await clusters?.stop();
  });

  test("installs Legation, which delegates a pod", async () => {
    const notes = await install();
    const [label = ""] = /kubectl label namespace legation-system .*/.exec(notes) ?? [];
    await run(...label.split(" ").slice(1));
    const service = await kubectl(west, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
    const { kubeconfig } = west;
    const member = [`--member-kubeconfig=${kubeconfig}`, `--member-server=https://${service}`];
    await legation(["join", "west", `--kubeconfig=${host.kubeconfig}`, ...member]);
    namespace = await freshNamespace(host, {
      prefix: "charted",
      labels: { "legation.dev/delegation": "all" },
      annotations: { "legation.dev/api": "none" },
      onFinished: () => {},
    });
    await runPod("first");
    expect(await phaseOf("first")).toBe("Running legation-west");
  }, 600_000);

  test("is known by `legation version` and respected by `legation install`", async () => {
    const { host: versions } = JSON.parse(await legation(["version", `--kubeconfig=${host.kubeconfig}`, "-o", "json"]));
    expect(versions.legation).toMatchObject({ hostName: "charted", installer: "Helm", members: [{ name: "west" }] });
    expect(versions.legation.processes).toHaveLength(2);
    for (const { version, pods } of versions.legation.processes) {
      expect(pods).toEqual([0, 1].map(() => expect.objectContaining({ version, image: LEGATION_IMAGE, ready: true })));
    }
    const diagnosis = await runCli(["doctor", "-o", "json", `--kubeconfig=${host.kubeconfig}`]);
    const { groups } = JSON.parse(diagnosis.stdout) as { groups: readonly FindingGroup[] };
    const problems = groups
      .filter(({ name }) => name === "Installation")
      .flatMap(({ findings }) => findings.filter(({ state }) => state !== "OK"));
    // These tests gave the webhooks more time.
    const remedy = "helm upgrade legation CHART --namespace legation-system --reset-then-reuse-values";
    const what = expect.stringMatching(/^webhook configurations: not as this version installs them: /) as unknown;
    expect(problems).toEqual([{ state: "FAIL", what, remedy }]);
    const refused = await runCli(["install", `--kubeconfig=${host.kubeconfig}`]);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain("is installed by the Helm release legation in namespace legation-system");
    const allowed = await runCli(["install", "--types=configmaps", `--kubeconfig=${host.kubeconfig}`]);
    expect(allowed, allowed.stderr).toMatchObject({ code: 0 });
    expect(await run("get", "delegatedtypes.legation.dev", "-o", "name")).toBe(
      "delegatedtype.legation.dev/configmaps\n",
    );
    await run("delete", "delegatedtypes.legation.dev", "--all");
  });

  test("passes `helm test`, which runs doctor in a pod, and whose rights end with it", async () => {
    const said = await runHelm(["test", "legation", "--logs"]);
    expect(said).toContain("west is ready");
    expect(said).toMatch(/OK\s+the API server reaches the webhook/);
    expect(await run("get", "clusterroles,clusterrolebindings", "-o", "name")).not.toContain("legation-test");
    await run("-n", SYSTEM, "delete", "pod/legation-test");
  }, 400_000);

  test("serves the page for a team, which a user of the host signs in to", async () => {
    await run("-n", namespace, "create", "serviceaccount", "viewer");
    await bindClusterRole(host, "legation-viewer", { kind: "User", name: `system:serviceaccount:${namespace}:viewer` });
    const ui = await openTeamPage(host);
    onTestFinished(ui.close);
    const { page, show, signIn } = ui;
    await page.getByLabel("Token").waitFor();
    expect(await page.evaluate(`fetch("/api/live").then(({ status }) => status)`)).toBe(401);
    await signIn(namespace, "viewer");
    await show("#/members");
    await page.getByRole("article", { name: "west" }).waitFor();
  }, 60_000);

  test("upgrades, and keeps the webhook's certificate and the pods", async () => {
    const before = await bundles();
    expect(before).not.toBe("");
    // The tests have set timeouts of webhooks.
    const upgrade = ["upgrade", "legation", CHART, "--reuse-values", "--force-conflicts", "--values=-"];
    await runHelm(upgrade, { controller: { replicas: 1 } });
    await rolledOut(host, "webhook", "controller");
    expect(await run("-n", SYSTEM, "get", "deployment/legation-controller", "-o", "jsonpath={.spec.replicas}")).toBe(
      "1",
    );
    expect(await bundles()).toBe(before);
    expect(await phaseOf("first")).toBe("Running legation-west");
    await waitLongForWebhooks(host);
    await runPod("second");
  }, 600_000);

  test("removes the page for a team by an upgrade without it", async () => {
    const upgrade = ["upgrade", "legation", CHART, "--reuse-values", "--force-conflicts", "--wait", "--values=-"];
    await runHelm(upgrade, { ui: { enabled: false } });
    await waitLongForWebhooks(host);
    expect(await run("get", "namespaces", "-o", "name")).toContain("namespace/legation-system\n");
    await run("wait", "namespace/legation-ui", "--for=delete", "--timeout=60s");
    expect(await phaseOf("first")).toBe("Running legation-west");
  }, 300_000);

  test("uninstalls and leaves definitions, Clusters and pods, with which a new release goes on", async () => {
    await runHelm(["uninstall", "legation", "--wait"]);
    expect(await owned()).toBe("");
    for (const name of DEFINITIONS) await run("get", `customresourcedefinition/${name}`);
    expect(await run("get", "clusters.legation.dev", "-o", "name")).toBe("cluster.legation.dev/west\n");
    expect(await phaseOf("first")).toBe("Running legation-west");
    await install();
    await runPod("third");
    await run("-n", namespace, "delete", "pod/first", "--timeout=200s");
    expect(await kubectl(west, ["-n", namespace, "get", "pods", "-o", "name"])).toBe("pod/second\npod/third\n");
  }, 900_000);

  test("is removed for good by `legation uninstall`", async () => {
    await run("delete", "namespace", namespace, "--timeout=240s");
    const { kubeconfig } = host;
    await legation(["unjoin", "west", `--kubeconfig=${kubeconfig}`, `--member-kubeconfig=${west.kubeconfig}`]);
    await legation(["uninstall", `--kubeconfig=${kubeconfig}`]);
    expect(await owned()).toBe("");
    expect(await run("get", "customresourcedefinitions", "-o", "name")).not.toContain("legation.dev");
    expect(await run("get", "namespaces", "-o", "name")).not.toContain("namespace/legation");
  }, 600_000);
});
