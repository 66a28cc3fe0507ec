import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { ADDED_CONDITION } from "../../../src/api/keys.ts";
import { events, pods } from "../../../src/kube/resources.ts";
import { conditionOf } from "../../../src/pods/pod-state.ts";
import { kubeconfigText } from "../../support/clusters/kubeconfig.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { mutatingPolicy, newPodsIn } from "../../support/harness/mutating-policy.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { createUser, openMember } from "../../support/legation/access.ts";
import { runCli } from "../../support/legation/cli.ts";
import { legationOn } from "../../support/legation/process.ts";

const LINES = "for i in 1 2 3; do echo line $i of $JOB_COMPLETION_INDEX; sleep 0.2; done";

onRealNodes((realNodes) => {
  let host: Place;
  let west: Place;

  beforeAll(async () => {
    host = (await realNodes().places({ onFinished: afterFile })).delegating;
    west = realNodes().inMember(host);
  });

  /** Creates a Job whose pods have an index. */
  async function create(
    name: string,
    script: string,
    {
      whole = true,
      ...spec
    }: { readonly whole?: boolean; readonly completions?: number; readonly parallelism?: number } = {},
  ): Promise<void> {
    const containers = [{ name: "main", image: "localhost/busybox:1", command: ["sh", "-c", script] }];
    const job = {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name, annotations: whole ? { "legation.dev/whole": "true" } : {} },
      spec: {
        completionMode: "Indexed",
        completions: 3,
        parallelism: 2,
        template: {
          spec: {
            restartPolicy: "Never",
            terminationGracePeriodSeconds: 1,
            automountServiceAccountToken: false,
            containers,
          },
        },
        ...spec,
      },
    };
    await kubectl(host.cluster, ["-n", host.namespace, "apply", "-f", "-"], { input: JSON.stringify(job) });
  }

  function logs(name: string, ...args: readonly string[]): ReturnType<typeof legationOn> {
    return legationOn(host.cluster, "logs", `job/${name}`, "-n", host.namespace, ...args);
  }

  /** Returns the logs of a Job's pods as kubectl prints them in the cluster that runs them. */
  async function printedBy({ cluster, namespace }: Place, name: string, ...args: readonly string[]): Promise<string[]> {
    const all = ["-l", `batch.kubernetes.io/job-name=${name}`, "--prefix", "--tail=-1", ...args];
    const text = await kubectl(cluster, ["-n", namespace, "logs", ...all]);
    return lines(text.replaceAll(/^\[pod\/([^/]+)\/[^\]]+\]/gm, "[west/$1]"));
  }

  function lines(text: string): string[] {
    return text
      .split("\n")
      .filter((line) => line !== "")
      .sort();
  }

  async function complete(name: string): Promise<void> {
    const wait = ["-n", host.namespace, "wait", `job/${name}`, "--for=condition=Complete", "--timeout=100s"];
    await kubectl(host.cluster, wait, { timeoutMs: 110_000 });
  }

  describe("a whole Job", () => {
    test.concurrent("has its pods' logs followed from before its first pod until it is finished, each line once", async () => {
      await create("followed", LINES);
      const { code, stdout, stderr } = await logs("followed", "-f");
      expect({ code, stderr: stderr.replace(/^Job .* has no member yet.*\n/, "") }).toEqual({ code: 0, stderr: "" });
      expect(lines(stdout)).toHaveLength(9);
      expect(lines(stdout)).toEqual(await printedBy(west, "followed"));
    });

    test.concurrent("has the same logs as in its member, whichever part is asked for", async () => {
      await create("ended", LINES);
      await complete("ended");
      for (const args of [[], ["--tail=1"], ["--timestamps"]]) {
        const { code, stdout, stderr } = await logs("ended", ...args);
        expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
        expect(lines(stdout)).toEqual(await printedBy(west, "ended", ...args));
      }
      const all = await logs("ended", "--all-containers", "--since=1h");
      expect(all.stdout).toMatch(/^\[west\/ended-0-\w+\/main\] line 1 of 0\n/);
    });

    test.concurrent("has the log of its only pod as it is, byte by byte", async () => {
      await create("bytes", "printf '\\377\\001 a\\n\\nno end'", { completions: 1, parallelism: 1 });
      await complete("bytes");
      const { items } = await west.client.list(pods, {
        namespace: west.namespace,
        labelSelector: "batch.kubernetes.io/job-name=bytes",
      });
      const there = await kubectl(west.cluster, ["-n", west.namespace, "logs", items[0]?.metadata.name ?? ""]);
      expect((await logs("bytes")).stdout).toBe(there);
    });

    test.concurrent("is read with the reader's own rights in the member, when the host's credentials are not theirs to read", async () => {
      await create("own", LINES);
      await complete("own");
      const [there, here] = [await reader(west, "west"), await reader(host, "host")];
      const asked = ["logs", "job/own", "-n", host.namespace, `--kubeconfig=${here}`];
      const refused = await runCli(asked);
      expect(refused.code).toBe(1);
      expect(refused.stdout).toBe("");
      expect(refused.stderr).toMatch(
        /^west: you may not read the host's credentials for it \(get secrets legation-system\/member-west\).*\n {2}give a kubeconfig of your own with a context west/,
      );
      const { code, stdout, stderr } = await runCli([...asked, `--member-kubeconfig=${there}`]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(lines(stdout)).toEqual(await printedBy(west, "own"));
    });

    // The last two disturb others.
    test("goes on being followed when the member's connections are cut", async () => {
      const script = "for i in $(seq 20); do echo line $i; sleep 0.5; done";
      await create("cut", script, { completions: 1, parallelism: 1 });
      const following = logs("cut", "-f");
      await eventually(
        async () => {
          const { items } = await west.client.list(pods, {
            namespace: west.namespace,
            labelSelector: "batch.kubernetes.io/job-name=cut",
          });
          return items[0]?.status?.phase === "Running";
        },
        { what: "a running pod", timeoutMs: 60_000 },
      );
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      await west.cluster.proxy.reset();
      const { code, stdout } = await following;
      expect(code).toBe(0);
      expect(stdout).toBe(Array.from({ length: 20 }, (_, index) => `line ${index + 1}\n`).join(""));
    }, 120_000);

    test("names a member that cannot be reached", async () => {
      await create("away", LINES);
      await complete("away");
      await west.cluster.proxy.cut();
      try {
        const { code, stderr } = await logs("away");
        expect(code).toBe(1);
        expect(stderr).toMatch(/^west: west: list jobs .*\n/);
        expect(stderr).toContain("logs are missing, as told above: west");
      } finally {
        await west.cluster.mend();
      }
    });
  });

  test("a Job whose pods are delegated one by one has its logs by way of the host", async () => {
    await create("proxies", LINES, { whole: false });
    const { code, stdout, stderr } = await logs("proxies", "-f");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(lines(stdout)).toEqual(await printedBy(west, "proxies"));
  });

  test("a container that the member adds and that fails is named on the host, and its log is read in the member", async () => {
    await injectFailing("mesh", "echo no route; exit 3");
    const template = {
      metadata: { labels: { app: "meshed" } },
      spec: {
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        containers: [
          { name: "main", image: "localhost/busybox:1", command: ["sh", "-c", "echo main says; sleep 600 & wait"] },
        ],
      },
    };
    const deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "meshed" },
      spec: { selector: { matchLabels: { app: "meshed" } }, template },
    };
    const here = ["-n", host.namespace];
    await kubectl(host.cluster, [...here, "apply", "-f", "-"], { input: JSON.stringify(deployment) });
    const pod = await eventually(
      async () => {
        const { items } = await host.client.list(pods, { namespace: host.namespace, labelSelector: "app=meshed" });
        const failing = items.find((each) => conditionOf(each, ADDED_CONDITION)?.reason === "ContainerFailing");
        if (failing === undefined) throw new Error("no pod has a failing container");
        return failing;
      },
      { what: "a failing container that the member added", timeoutMs: 60_000 },
    );
    expect(pod.status?.containerStatuses?.map(({ name }) => name)).toEqual(["main"]);
    const { name } = pod.metadata;
    const ran = (...args: readonly string[]): ReturnType<typeof legationOn> =>
      legationOn(host.cluster, ...args, ...here);
    // The container is started again and again, and looks well for a moment each time.
    await eventuallyPasses(
      async () => {
        const status = await ran("status", "pod", name);
        expect(status.stdout).toContain("west added containers");
        expect(status.stdout).toMatch(/mesh (waits: CrashLoopBackOff|ended|runs).*/);
        expect((await ran("status", "deployment/meshed")).stdout).toContain("containers that west added fail: mesh ");
      },
      { timeoutMs: 60_000 },
    );
    await eventually(
      async () => {
        const { items } = await host.client.list(events, {
          namespace: host.namespace,
          fieldSelector: "reason=AddedContainerFailing",
        });
        return items.some(({ message = "" }) => message.includes(`legation logs ${name} -n ${host.namespace} -c NAME`));
      },
      { what: "the event that names the container" },
    );
    await eventuallyPasses(
      async () => {
        expect(await ran("logs", name, "-c", "mesh")).toEqual({ code: 0, stdout: "no route\n", stderr: "" });
      },
      { timeoutMs: 60_000 },
    );
    expect(await ran("logs", name)).toEqual({ code: 0, stdout: "main says\n", stderr: "" });
    // The host's API server knows the containers of the proxy alone.
    await expect(kubectl(host.cluster, [...here, "logs", name, "-c", "mesh"])).rejects.toThrow(
      "mesh is not valid for pod",
    );
  });

  /** Has the member add a container to pods of the app "meshed", as meshes and log collectors do. */
  async function injectFailing(name: string, script: string): Promise<void> {
    const { cluster, namespace } = west;
    const container = `Object.spec.containers{name: "${name}", image: "localhost/busybox:1", command: ["sh", "-c", "${script}"]}`;
    const policy = mutatingPolicy(`${name}-in-${namespace}`, {
      matchConstraints: newPodsIn([namespace]),
      matchConditions: [{ name: "meshed", expression: 'object.metadata.?labels.?app.orValue("") == "meshed"' }],
      mutation: {
        patchType: "JSONPatch",
        jsonPatch: { expression: `[JSONPatch{op: "add", path: "/spec/containers/-", value: ${container}}]` },
      },
    });
    await applyAll(cluster, policy);
    const metadata = { name: "trial", namespace, labels: { app: "meshed" } };
    const trial = { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [{ name: "main", image: "any" }] } };
    await eventually(
      async () => {
        const args = ["create", "--dry-run=server", "-o", "jsonpath={.spec.containers[*].name}", "-f", "-"];
        return (await kubectl(cluster, args, { input: JSON.stringify(trial) })).includes(name);
      },
      { what: "the policy in force" },
    );
  }

  test("logs in a member that is open to users are read with the user's own rights there, also of other pods", async () => {
    await realNodes().legation.access();
    await openMember(host.cluster, west.cluster, "west");
    const closed = JSON.stringify({ spec: { access: null } });
    afterFile(async () => {
      await kubectl(host.cluster, ["patch", "clusters.legation.dev/west", "--type=merge", "-p", closed]);
    });
    const user = await createUser(host.cluster, "log-reader", "readers");
    const grant = ["create", "clusterrolebinding", "log-reader"];
    await kubectl(host.cluster, [...grant, "--clusterrole=legation-access", "--user=log-reader"]);
    const view = ["create", "rolebinding", "log-reader", "--clusterrole=view"];
    await kubectl(host.cluster, ["-n", host.namespace, ...view, "--user=log-reader"]);
    await kubectl(west.cluster, ["-n", west.namespace, ...view, "--group=legation:readers"]);
    const script = "for i in 1 2 3; do echo line $i; sleep 0.5; done";
    const pod = [
      "run",
      "local",
      "--image=localhost/busybox:1",
      "--restart=Never",
      "--command",
      "--",
      "sh",
      "-c",
      script,
    ];
    await kubectl(west.cluster, ["-n", west.namespace, ...pod]);
    const asUser = (...args: string[]): ReturnType<typeof runCli> =>
      runCli(["logs", ...args, "-n", host.namespace, `--kubeconfig=${user.kubeconfig}`]);
    const printed = { code: 0, stdout: "line 1\nline 2\nline 3\n", stderr: "" };
    expect(await asUser("pod/local", "--clusters", "west", "-f")).toEqual(printed);
    expect(await asUser("-l", "run=local", "--clusters", "west")).toEqual(printed);
  });

  /** Makes a service account that may view one namespace, and returns its kubeconfig. */
  async function reader({ cluster, namespace }: Place, context: string): Promise<string> {
    await kubectl(cluster, ["-n", namespace, "create", "serviceaccount", "reader"]);
    await kubectl(cluster, [
      "-n",
      namespace,
      "create",
      "rolebinding",
      "reader",
      "--clusterrole=view",
      `--serviceaccount=${namespace}:reader`,
    ]);
    const token = (await kubectl(cluster, ["-n", namespace, "create", "token", "reader"])).trim();
    const folder = mkdtempSync(join(tmpdir(), "legation-reader-"));
    afterFile(async () => rmSync(folder, { recursive: true }));
    const file = join(folder, "kubeconfig");
    const { server, caData } = cluster;
    writeFileSync(file, kubeconfigText({ name: context, server, caData, user: "reader", token }), { mode: 0o600 });
    return file;
  }
});
