import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../support/clusters/types.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { legation } from "../../../support/legation/cli.ts";
import { LEGATION_IMAGE, writeLegationImage } from "../../../support/legation/image.ts";
import { podManifest } from "../../../support/streams/pods.ts";

// Legation as `legation install` deploys it: pods on a node of the host from an image with the Dockerfile's
// files. No part runs outside.

const SYSTEM = "legation-system";

whereRealNodesRun(() => {
  let clusters: Clusters | undefined;
  let folder: string | undefined;
  let host: Cluster;
  let west: Cluster;
  let namespace: string;
  const run = (...args: string[]): Promise<string> => kubectl(host, args, { timeoutMs: 250_000 });

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "legation-image-"));
    const image = join(folder, "legation.tar");
    await writeLegationImage(image);
    clusters = await startClusters({
      names: ["host", "west"],
      clusters: {
        // Without kube-proxy, the API server finds the webhook's pods by itself.
        host: { realNode: true, images: [image], apiServerFlags: ["--enable-aggregator-routing=true"] },
        west: { realNode: true },
      },
      onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
    });
    host = clusters.get("host");
    west = clusters.get("west");
    await legation(["install", `--kubeconfig=${host.kubeconfig}`, `--image=${LEGATION_IMAGE}`]);
    await waitLongForWebhooks();
    // Pods reach the member at its service address.
    const service = await kubectl(west, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
    for (const name of ["webhook", "controller"]) await rolledOut(name);
    await legation([
      "join",
      "west",
      `--kubeconfig=${host.kubeconfig}`,
      `--member-kubeconfig=${west.kubeconfig}`,
      `--member-server=https://${service}`,
    ]);
    namespace = await freshNamespace(host, {
      prefix: "inside",
      labels: { "legation.dev/delegation": "all" },
      annotations: { "legation.dev/api": "none" },
      onFinished: () => {},
    });
  });
  afterAll(async () => {
    await clusters?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  function rolledOut(name: string): Promise<string> {
    return run("-n", SYSTEM, "rollout", "status", `deployment/legation-${name}`, "--timeout=240s");
  }

  /** Sets the webhooks' timeouts to the maximum: a late response is no refusal. */
  async function waitLongForWebhooks(): Promise<void> {
    const [mutating, validating] = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];
    for (const configuration of [`${mutating}/legation`, `${mutating}/zz-legation`, `${validating}/legation`]) {
      const names = await run("get", configuration, "-o", "jsonpath={.webhooks[*].name}");
      const webhooks = names.split(" ").map((name) => ({ name, timeoutSeconds: 30 }));
      await run("patch", configuration, `--patch=${JSON.stringify({ webhooks })}`);
    }
  }

  async function create(name: string, script: string): Promise<void> {
    await kubectl(host, ["apply", "-n", namespace, "-f", "-"], {
      input: podManifest(name, [{ name: "main", script }]),
    });
  }

  test("runs two replicas of each Deployment under the restricted Pod Security profile", async () => {
    const columns =
      "jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.spec.nodeName} {.status.containerStatuses[0].restartCount}{'\\n'}{end}";
    const pods = (await run("-n", SYSTEM, "get", "pods", "-o", columns)).trim().split("\n");
    expect(pods).toHaveLength(4);
    for (const pod of pods) {
      const [name = "", phase, node, restarts] = pod.split(" ");
      expect([phase, node]).toEqual(["Running", "host-real"]);
      // A controller that loses its lease, as on a slow machine, exits and restarts.
      if (restarts !== "0") expect(await run("-n", SYSTEM, "logs", name, "--previous")).toContain("lost the lease");
    }
    const label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}";
    expect(await run("get", "namespace", SYSTEM, "-o", label)).toBe("restricted");
  });

  test("delegates a pod, and serves its log and commands", async () => {
    await create("web", "echo hello from $HOSTNAME; trap 'exit 0' TERM; sleep 600 & wait");
    await run("-n", namespace, "wait", "pod/web", "--for=condition=Ready", "--timeout=150s");
    expect(await run("-n", namespace, "get", "pod", "web", "-o", "jsonpath={.spec.nodeName}")).toBe("legation-west");
    await eventuallyPasses(async () => {
      expect(await run("-n", namespace, "logs", "web")).toBe("hello from web\n");
    });
    expect(await run("-n", namespace, "exec", "web", "--", "hostname")).toBe("web\n");
    expect(await kubectl(west, ["-n", namespace, "get", "pods", "-o", "name"])).toBe("pod/web\n");
  });

  test("refuses and loses no pod while webhook and controller are restarted", async () => {
    const names: string[] = [];
    let rolling = true;
    const creating = (async () => {
      while (rolling) {
        const name = `during-${names.length}`;
        names.push(name);
        await create(name, "echo done");
        await sleep(300);
      }
    })();
    const restart = ["rollout", "restart", "deployment/legation-webhook", "deployment/legation-controller"];
    const rolled = run("-n", SYSTEM, ...restart)
      .then(() => Promise.all(["webhook", "controller"].map(rolledOut)))
      .finally(() => {
        rolling = false;
      });
    await Promise.all([rolled, creating]);
    await eventually(
      async () => {
        const phases = await run("-n", namespace, "get", "pods", "-o", "jsonpath={.items[*].status.phase}");
        return phases.split(" ").filter((phase) => phase === "Succeeded").length === names.length;
      },
      { timeoutMs: 240_000, what: `${names.length} pods that succeed` },
    );
    // By the controller that leads now.
    await eventually(async () => (await run("-n", namespace, "logs", names.at(-1) ?? "")) === "done\n", {
      timeoutMs: 90_000,
    });
    expect(await run("-n", namespace, "get", "pod", "web", "-o", "jsonpath={.status.phase}")).toBe("Running");
  }, 600_000);
});
