import { Agent, request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterProxyPath } from "../../../../src/api/access.ts";
import type { Cluster } from "../../../support/clusters/types.ts";
import { cleanUpFile } from "../../../support/harness/after-file.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { accessAvailable, bindClusterRole, createUser, type HostUser } from "../../../support/legation/access.ts";
import { legation } from "../../../support/legation/cli.ts";
import { LEGATION_IMAGE } from "../../../support/legation/image.ts";
import {
  type ImageClusters,
  startImageClusters,
  waitLongForWebhooks,
} from "../../../support/legation/image-clusters.ts";
import { podManifest } from "../../../support/streams/pods.ts";

// Legation as `legation install` deploys it: pods on a node of the host from an image with the Dockerfile's
// files. No part runs outside.

const SYSTEM = "legation-system";
const ACCESS = "legation-access";

/** An answer of a member to a user of the host. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

whereRealNodesRun(() => {
  let clusters: ImageClusters | undefined;
  let host: Cluster;
  let west: Cluster;
  let namespace: string;
  const run = (...args: string[]): Promise<string> => kubectl(host, args, { timeoutMs: 250_000 });

  beforeAll(async () => {
    clusters = await startImageClusters();
    ({ host, west } = clusters);
    await legation(["install", `--kubeconfig=${host.kubeconfig}`, `--image=${LEGATION_IMAGE}`, "--access"]);
    await waitLongForWebhooks(host);
    // Pods reach the member at its service address.
    const service = await kubectl(west, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
    for (const name of ["webhook", "controller"]) await rolledOut(name);
    await rolledOut("access", ACCESS);
    await legation([
      "join",
      "west",
      `--kubeconfig=${host.kubeconfig}`,
      `--member-kubeconfig=${west.kubeconfig}`,
      `--member-server=https://${service}`,
      "--access",
    ]);
    namespace = await freshNamespace(host, {
      prefix: "inside",
      labels: { "legation.dev/delegation": "all" },
      annotations: { "legation.dev/api": "none" },
      onFinished: () => {},
    });
  }, 600_000);
  afterAll(async () => {
    await cleanUpFile();
    await clusters?.stop();
  });

  function rolledOut(name: string, system = SYSTEM): Promise<string> {
    return run("-n", system, "rollout", "status", `deployment/legation-${name}`, "--timeout=240s");
  }

  async function create(name: string, script: string): Promise<void> {
    await kubectl(host, ["apply", "-n", namespace, "-f", "-"], {
      input: podManifest(name, [{ name: "main", script }]),
    });
  }

  test("runs two replicas of each Deployment under the restricted Pod Security profile", async () => {
    const columns =
      "jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.spec.nodeName} {.status.containerStatuses[0].restartCount}{'\\n'}{end}";
    const label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}";
    for (const [system, count] of [[SYSTEM, 4] as const, [ACCESS, 2] as const]) {
      const pods = (await run("-n", system, "get", "pods", "-o", columns)).trim().split("\n");
      expect(pods).toHaveLength(count);
      for (const pod of pods) {
        const [name = "", phase, node, restarts] = pod.split(" ");
        expect([phase, node]).toEqual(["Running", "host-real"]);
        // A controller that loses its lease, as on a slow machine, exits and restarts.
        if (restarts !== "0") expect(await run("-n", system, "logs", name, "--previous")).toContain("lost the lease");
      }
      expect(await run("get", "namespace", system, "-o", label)).toBe("restricted");
    }
  });

  describe("access of a user of the host to the member", () => {
    let alice: HostUser;
    beforeAll(async () => {
      await accessAvailable(host);
      alice = await createUser(host, "alice", "developers");
      await bindClusterRole(host, "legation-access", { kind: "User", name: "alice" });
      await bindClusterRole(west, "edit", { kind: "User", name: "legation:alice" });
      await eventuallyPasses(async () => expect((await ask("GET")).status).toBe(200), { timeoutMs: 60_000 });
    });

    const agent = new Agent({ keepAlive: true });
    afterAll(() => agent.destroy());

    /** Reads or creates ConfigMaps in the member as alice. The status is 0 if the connection was cut. */
    function ask(method: "GET" | "POST"): Promise<Answer> {
      const { certificate: cert, key } = alice;
      const url = `${host.server}${clusterProxyPath("west")}/api/v1/namespaces/default/configmaps`;
      const headers = { "content-type": "application/json" };
      const outgoing = request(url, { method, ca: host.caData, cert, key, agent, headers });
      outgoing.end(method === "GET" ? undefined : JSON.stringify({ metadata: { generateName: "short-" } }));
      return new Promise((resolve) => {
        const end = (status: number, text: string): void => resolve({ status, text });
        outgoing.once("error", (error) => end(0, String(error)));
        outgoing.once("response", (response) => {
          let text = "";
          response.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          response.once("error", (error) => end(0, String(error)));
          response.once("end", () => end(response.statusCode ?? 0, text));
        });
      });
    }

    /** Asks without a pause until the work is done, a few at a time. Returns the answers that are no success, and how many are one. */
    async function askDuring(work: () => Promise<void>): Promise<{ failures: Answer[]; successes: number }> {
      const failures: Answer[] = [];
      let [successes, working] = [0, true];
      const asking = (["GET", "POST", "GET", "POST"] as const).map(async (method) => {
        while (working) {
          const answer = await ask(method);
          if (answer.status === 200 || answer.status === 201) successes += 1;
          else failures.push(answer);
          await sleep(20);
        }
      });
      await work().finally(() => {
        working = false;
      });
      await Promise.all(asking);
      return { failures, successes };
    }

    test("cuts no request in a rolling restart", async () => {
      const { failures, successes } = await askDuring(async () => {
        await run("-n", ACCESS, "rollout", "restart", "deployment/legation-access");
        await rolledOut("access", ACCESS);
        // The last replica of before ends after its successor is ready.
        await eventually(
          async () => (await run("-n", ACCESS, "get", "pods", "-o", "name")).trim().split("\n").length === 2,
          {
            timeoutMs: 90_000,
            what: "two replicas are left",
          },
        );
      });
      expect(failures).toEqual([]);
      expect(successes).toBeGreaterThan(100);
    }, 400_000);
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
      .then(() => Promise.all(["webhook", "controller"].map((name) => rolledOut(name))))
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
