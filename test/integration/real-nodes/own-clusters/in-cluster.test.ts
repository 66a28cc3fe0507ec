import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isAlive } from "../../../support/clusters/lock.ts";
import type { Cluster } from "../../../support/clusters/types.ts";
import { cleanUpFile } from "../../../support/harness/after-file.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { accessAvailable, bindClusterRole, createUser, type HostUser } from "../../../support/legation/access.ts";
import {
  type AccessReplica,
  accessReplicas,
  processOf,
  servedBy,
  servingReplicas,
} from "../../../support/legation/access-replicas.ts";
import { Asking, isSuccess } from "../../../support/legation/asking.ts";
import { legation } from "../../../support/legation/cli.ts";
import { LEGATION_IMAGE } from "../../../support/legation/image.ts";
import {
  type ImageClusters,
  rolledOut,
  startImageClusters,
  waitLongForWebhooks,
} from "../../../support/legation/image-clusters.ts";
import { legationOn } from "../../../support/legation/process.ts";
import { StreamingKubectl } from "../../../support/streams/kubectl.ts";
import { podManifest } from "../../../support/streams/pods.ts";

// Legation as `legation install` deploys it: pods on a node of the host from an image with the Dockerfile's
// files. No part runs outside.

const SYSTEM = "legation-system";
const ACCESS = "legation-access";

// How late the host's API server may learn what has just been read from it.
const INFORMED_MS = 1_000;
const WATCHED_ON_MS = 5_000;
// Three probes of readiness with their timeouts.
const DROPPED_MS = 40_000;
// The host's API server gives a request up after a minute.
const HUNG = /^(504 |503 error trying to reach service: |0 Error: )/;
// The host's API server tells of a replica that it does not reach, and cuts a response of which it has sent a part.
const CUT = /^(503 error trying to reach service: |0 Error: )/;

// Why a container restarts on a slow machine: a controller loses its lease, or nothing has started in time.
const SLOW = /lost the lease|failed startup probe|StartError|DeadlineExceeded/;

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
    await rolledOut(host, "webhook", "controller", "access");
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

  async function create(name: string, script: string): Promise<void> {
    await kubectl(host, ["apply", "-n", namespace, "-f", "-"], {
      input: podManifest(name, [{ name: "main", script }]),
    });
  }

  /** Returns what is known of the end of a pod's earlier container: its log, its last state and the kubelet's events. */
  async function lastWords(system: string, name: string): Promise<string> {
    const [log, state, told] = await Promise.all([
      run("-n", system, "logs", name, "--previous"),
      run("-n", system, "get", "pod", name, "-o", "jsonpath={.status.containerStatuses[0].lastState}"),
      run("-n", system, "get", "events", `--field-selector=involvedObject.name=${name}`),
    ]);
    return [log, state, told].join("\n");
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
        if (restarts !== "0") expect(await lastWords(system, name)).toMatch(SLOW);
      }
      expect(await run("get", "namespace", system, "-o", label)).toBe("restricted");
    }
  });

  describe("access of a user of the host to the member", () => {
    let alice: HostUser;
    let asking: Asking;
    beforeAll(async () => {
      await accessAvailable(host);
      alice = await createUser(host, "alice", "developers");
      await bindClusterRole(host, "legation-access", { kind: "User", name: "alice" });
      await bindClusterRole(west, "edit", { kind: "User", name: "legation:alice" });
      asking = new Asking(host, alice, { member: "west", namespace: "default" });
      await eventuallyPasses(async () => expect((await asking.ask("GET")).status).toBe(200), { timeoutMs: 60_000 });
    });

    afterAll(() => asking?.[Symbol.dispose]());

    test("cuts no request in a rolling restart", async () => {
      const answers = await asking.during(async () => {
        await run("-n", ACCESS, "rollout", "restart", "deployment/legation-access");
        await rolledOut(host, "access");
        // The last replica of before ends after its successor is ready.
        await eventually(async () => (await accessReplicas(host)).length === 2, {
          timeoutMs: 90_000,
          what: "two replicas are left",
        });
      });
      expect(answers.filter((answer) => !isSuccess(answer))).toEqual([]);
      expect(answers.length).toBeGreaterThan(100);
    }, 400_000);

    test("fails requests of a killed replica with an error, and no others once the Service has dropped it", async () => {
      const team = await freshNamespace(west, { prefix: "team" });
      const input = podManifest("web", [{ name: "main", script: "while true; do echo line; sleep 0.2; done" }]);
      await kubectl(west, ["-n", team, "apply", "-f", "-"], { input });
      await kubectl(west, ["-n", team, "wait", "pod/web", "--for=condition=Ready", "--timeout=60s"]);
      const [killed, spared] = await accessReplicas(host);
      if (killed === undefined || spared === undefined) throw new Error("there are no two replicas");
      /** Opens a stream of alice that ends with the test, and that this replica serves. */
      const streamOn = (replica: AccessReplica, begun: RegExp, ...args: string[]): Promise<StreamingKubectl> => {
        const options = { kubeconfig: alice.kubeconfigOf("west"), transport: "WebSocket", timeoutMs: 300_000 } as const;
        const open = async (): Promise<StreamingKubectl> => {
          const stream = new StreamingKubectl(["-n", team, ...args], options);
          onTestFinished(() => stream[Symbol.dispose]());
          await stream.says(begun);
          return stream;
        };
        return servedBy(host, replica, open, (stream) => stream[Symbol.dispose]());
      };
      const streamsOn = async (replica: AccessReplica) => ({
        exec: await streamOn(replica, /^begun$/m, "exec", "-i", "web", "--", "sh", "-c", "echo begun; cat"),
        watch: await streamOn(replica, /kube-root-ca.crt/, "get", "configmaps", "--watch"),
        log: await streamOn(replica, /^line$/m, "logs", "-f", "web"),
      });
      const [cut, kept] = [await streamsOn(killed), await streamsOn(spared)];
      const list = (): Promise<string> =>
        kubectl(host, ["-n", team, "get", "configmaps", "-o", "name"], { kubeconfig: alice.kubeconfigOf("west") });
      const serves = async (): Promise<boolean> => (await servingReplicas(host)).includes(killed.name);
      const said: string[] = [];
      let droppedAt = 0;
      const answers = await asking.during(async () => {
        process.kill(processOf(killed), "SIGKILL");
        do {
          const lists = await Promise.allSettled(Array.from({ length: 4 }, list));
          said.push(...lists.flatMap((ended) => (ended.status === "rejected" ? [String(ended.reason)] : [])));
        } while (await serves());
        droppedAt = performance.now();
        await eventuallyPasses(async () => expect(await list()).toBe("configmap/kube-root-ca.crt\n"), {
          timeoutMs: INFORMED_MS,
        });
        await eventually(serves, { what: "the killed replica serves again", timeoutMs: 90_000 });
        await sleep(WATCHED_ON_MS);
      });

      const failures = answers.filter((answer) => !isSuccess(answer));
      for (const { status, text } of failures) expect(`${status} ${text}`).toMatch(CUT);
      expect(failures.filter(({ askedAt }) => askedAt > droppedAt + INFORMED_MS)).toEqual([]);
      for (const message of said) expect(message).toMatch(/ServiceUnavailable|stream error|EOF/);
      // An answer is whole, or none.
      for (const { method, text } of answers.filter(isSuccess)) {
        expect(JSON.parse(text)).toMatchObject({ kind: method === "GET" ? "ConfigMapList" : "ConfigMap" });
      }
      expect(await cut.exec.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("unexpected EOF") });
      expect(await cut.log.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("stream error") });
      // kubectl prints the end of a watch as one more object.
      expect((await cut.watch.ended).stdout.toString()).toContain("unable to decode an event from the watch stream");

      kept.exec.write("still here\n");
      await kept.exec.says(/^still here$/m);
      await kubectl(west, ["-n", team, "create", "configmap", "later"]);
      await kept.watch.says(/^later /m);
      expect(kept.log.child.exitCode).toBeNull();
      await streamOn(killed, /^later /m, "get", "configmaps", "--watch");
    }, 400_000);

    test("sends no request to a replica that hangs once its probes have failed, until it goes on", async () => {
      const [hung] = await accessReplicas(host);
      if (hung === undefined) throw new Error("there is no replica");
      const serves = async (): Promise<boolean> => (await servingReplicas(host)).includes(hung.name);
      const stopped = processOf(hung);
      onTestFinished(() => {
        if (isAlive(stopped)) process.kill(stopped, "SIGCONT");
      });
      let droppedAt = 0;
      const answers = await asking.during(async () => {
        process.kill(stopped, "SIGSTOP");
        const what = "the replica that hangs is dropped from the Service";
        await eventually(async () => !(await serves()), { what, timeoutMs: DROPPED_MS });
        droppedAt = performance.now();
        await sleep(WATCHED_ON_MS);
        process.kill(stopped, "SIGCONT");
        await eventually(serves, { what: "the replica serves again", timeoutMs: DROPPED_MS });
        await sleep(WATCHED_ON_MS);
      });
      const failures = answers.filter((answer) => !isSuccess(answer));
      for (const { status, text } of failures) expect(`${status} ${text}`).toMatch(HUNG);
      expect(failures.filter(({ askedAt }) => askedAt > droppedAt + INFORMED_MS)).toEqual([]);
      expect(answers.filter(({ askedAt }) => askedAt > droppedAt + INFORMED_MS).length).toBeGreaterThan(100);
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

  test("refuses and loses no pod while webhook and controller are replaced by those of two shards", async () => {
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
    const rolled = legation(["install", `--kubeconfig=${host.kubeconfig}`, "--shards=2"])
      .then(() => rolledOut(host, "webhook", "controller"))
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

  test("divides the namespaces among its pods with --shards, and loses none to a kill", async () => {
    const divided = await Promise.all(
      Array.from({ length: 4 }, (_, number) =>
        freshNamespace(host, {
          prefix: `shard-${number}`,
          labels: { "legation.dev/delegation": "all" },
          annotations: { "legation.dev/api": "none" },
          onFinished: () => {},
        }),
      ),
    );
    /** Runs a pod in each namespace, and reads its log, which the first shard's holder serves. */
    const runEverywhere = async (name: string): Promise<void> => {
      const input = podManifest(name, [{ name: "main", script: "echo done" }]);
      await Promise.all(divided.map((other) => kubectl(host, ["apply", "-n", other, "-f", "-"], { input })));
      const done = ["wait", `pod/${name}`, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s"];
      await Promise.all(divided.map((other) => run("-n", other, ...done)));
      await eventuallyPasses(
        async () => {
          for (const other of divided) expect(await run("-n", other, "logs", name)).toBe("done\n");
        },
        { timeoutMs: 60_000 },
      );
    };
    const holders = async (): Promise<string[]> => {
      const { stdout } = await legationOn(host, "doctor");
      return [...stdout.matchAll(/a controller leads.* \((legation-controller-[^_]+)/g)].map(([, pod = ""]) => pod);
    };
    await eventuallyPasses(async () => expect(new Set(await holders()).size).toBe(2), { timeoutMs: 90_000 });
    await runEverywhere("two");
    const [killed = ""] = await holders();
    await run("-n", SYSTEM, "delete", "pod", killed, "--grace-period=0", "--force");
    await runEverywhere("killed");
  }, 600_000);
});
