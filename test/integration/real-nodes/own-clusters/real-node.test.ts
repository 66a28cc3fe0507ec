import { existsSync, globSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realNodesPossible } from "../../../support/clusters/node/possible.ts";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../support/clusters/types.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";

function podManifest(name: string, script: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 5,
      containers: [{ name: "main", image: "localhost/busybox:1", command: ["sh", "-c", script] }],
    },
  });
}

function refusesToStart(reason: string): void {
  test("is refused with the reason where the machine cannot run it", async () => {
    const start = startClusters({ names: ["real"], clusters: { real: { realNode: true } } });
    await expect(start).rejects.toThrow(`No real node can run here: ${reason}`);
  });
}

function runsContainers(): void {
  let clusters: Clusters;
  let real: Cluster;

  beforeAll(async () => {
    clusters = await startClusters({
      names: ["fake", "real"],
      clusters: { fake: { nodes: [] }, real: { realNode: true } },
      onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
    });
    real = clusters.get("real");
  });
  afterAll(() => clusters.stop());

  test("runs a pod's processes, with their logs, exec and exit code", async () => {
    const namespace = await freshNamespace(real);
    const script = "echo hello from $HOSTNAME; trap 'exit 3' TERM; sleep 600 & wait";
    await kubectl(real, ["apply", "-n", namespace, "-f", "-"], { input: podManifest("one", script) });
    await kubectl(real, ["wait", "-n", namespace, "pod/one", "--for=condition=Ready", "--timeout=60s"]);
    await eventuallyPasses(async () => {
      expect(await kubectl(real, ["logs", "-n", namespace, "one"])).toBe("hello from one\n");
    });
    expect(await kubectl(real, ["exec", "-n", namespace, "one", "--", "sh", "-c", "echo $((6 * 7))"])).toBe("42\n");
    // Runs in the background: the container's end may overtake the response of an exec into it.
    await kubectl(real, [
      "exec",
      "-n",
      namespace,
      "one",
      "--",
      "sh",
      "-c",
      "(sleep 0.3; kill -TERM 1) >/dev/null 2>&1 &",
    ]);
    const exitCode = [
      "get",
      "pod/one",
      "-n",
      namespace,
      "-o",
      "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}",
    ];
    await eventually(async () => (await kubectl(real, exitCode)) === "3", { what: "the exit code" });
  });

  test("lets pods reach both clusters' API servers, and nothing outside the machine", async () => {
    const namespace = await freshNamespace(real);
    const own = "$KUBERNETES_SERVICE_HOST";
    const fake = (
      await kubectl(clusters.get("fake"), ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"])
    ).trim();
    const tryEach = `for a in ${own} ${fake} 10.110.0.1 192.0.2.1; do nc -w 2 $a 443 </dev/null >/dev/null 2>&1 && echo yes || echo no; done`;
    await kubectl(real, ["apply", "-n", namespace, "-f", "-"], { input: podManifest("dialler", tryEach) });
    const succeeded = "--for=jsonpath={.status.phase}=Succeeded";
    await kubectl(real, ["wait", "-n", namespace, "pod/dialler", succeeded, "--timeout=60s"]);
    expect(await kubectl(real, ["logs", "-n", namespace, "dialler"])).toBe("yes\nyes\nno\nno\n");
  });

  test("removes its links and cgroups when the clusters stop, also with a pod running", async () => {
    const namespace = await freshNamespace(real, { onFinished: () => {} });
    await kubectl(real, ["apply", "-n", namespace, "-f", "-"], { input: podManifest("last", "sleep 600") });
    await kubectl(real, ["wait", "-n", namespace, "pod/last", "--for=condition=Ready", "--timeout=60s"]);
    const uid = await kubectl(real, [
      "get",
      "pod/last",
      "-n",
      namespace,
      "-o",
      "jsonpath={.status.containerStatuses[0].containerID}",
    ]);
    const id = uid.replace("containerd://", "");
    // cgroup version 1 has one tree per controller, version 2 one tree.
    const cgroups = (): string[] => globSync(`/sys/fs/cgroup/{,memory/}legation*/kubepods/*/*/${id}`);
    expect(cgroups()).toHaveLength(1);
    const links = (): string[] => Object.keys(networkInterfaces()).filter((link) => /^legation\d+$/.test(link));
    const before = links();
    const [, own = ""] = /\/(legation\d+)\//.exec(cgroups()[0] ?? "") ?? [];
    expect(before).toContain(own);
    await clusters.stop();
    // The links of these two clusters; those of other tests come and go meanwhile.
    const isOver = (): boolean => {
      const now = links();
      return !now.includes(own) && before.filter((link) => !now.includes(link)).length >= 2;
    };
    await eventually(isOver, { what: "the end of both links" });
    expect(cgroups()).toEqual([]);
    expect(existsSync(clusters.info.directory)).toBe(false);
  });
}

// Real nodes need root and cgroups; elsewhere the test checks the reason.
const obstacle = realNodesPossible();
describe("a real node", () => (obstacle === undefined ? runsContainers() : refusesToStart(obstacle)));
