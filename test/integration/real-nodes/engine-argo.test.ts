import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, test } from "vitest";
import { parse } from "yaml";
import { configMaps, pods } from "../../../src/kube/resources.ts";
import { IMAGE, onEngineClusters } from "../../support/engines/clusters.ts";
import { giveFiles } from "../../support/engines/given-files.ts";
import { ensurePrograms } from "../../support/engines/programs.ts";
import { type EngineProgram, startProgram } from "../../support/engines/run.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { evict, inPhase, podsOf, podThat } from "../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { ROOT } from "../../support/legation/cli.ts";

// Argo's controller beside the host, its executor in pods of the member, both unmodified.

const patient = { timeoutMs: 240_000, intervalMs: 500 };
const REPORT = join(ROOT, "examples", "engines", "argo", "report.yaml");
const COMPLETED = "workflows.argoproj.io/completed=true";

interface Workflow {
  readonly status?: {
    readonly phase?: string;
    readonly message?: string;
    readonly nodes?: Readonly<Record<string, Node>>;
  };
}

interface Node {
  readonly displayName: string;
  readonly type: string;
  readonly phase: string;
  readonly message?: string;
  readonly hostNodeName?: string;
  readonly outputs?: {
    readonly exitCode?: string;
    readonly result?: string;
    readonly parameters?: readonly { readonly name: string; readonly value: string }[];
  };
}

// The executor's rights by Argo's own documentation, and those of the step that creates a ConfigMap.
const ROLE = [
  { apiGroups: ["argoproj.io"], resources: ["workflowtaskresults"], verbs: ["create", "patch"] },
  { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "get"] },
];

function rightsAndSettings(namespace: string): object[] {
  const rbac = "rbac.authorization.k8s.io";
  const metadata = { name: "executor" };
  const subjects = [{ kind: "ServiceAccount", name: "default", namespace }];
  return [
    { apiVersion: `${rbac}/v1`, kind: "Role", metadata, rules: ROLE },
    {
      apiVersion: `${rbac}/v1`,
      kind: "RoleBinding",
      metadata,
      roleRef: { apiGroup: rbac, kind: "Role", name: "executor" },
      subjects,
    },
    // Several controllers on one machine cannot share a port.
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "workflow-controller-configmap" },
      data: { metricsConfig: "enabled: false\n" },
    },
  ];
}

type OnFinished = (cleanUp: () => Promise<void>) => void;

onEngineClusters((clusters) => {
  let argo: string;
  beforeAll(async () => {
    argo = await ensurePrograms("argo", (line) => process.stderr.write(`engines: ${line}\n`));
    // The CRDs exceed the size of client-side apply's annotation.
    await kubectl(clusters().host, ["apply", "--server-side", "-k", join(argo, "crds")]);
  }, 600_000);

  async function apply(namespace: string, ...items: readonly object[]): Promise<void> {
    await applyAll(clusters().host, items, ["-n", namespace]);
  }

  async function workflow(namespace: string, name: string): Promise<Workflow> {
    return JSON.parse(await kubectl(clusters().host, ["get", "workflow", name, "-n", namespace, "-o", "json"]));
  }

  function ended(namespace: string, name: string): Promise<Map<string, Node>> {
    return eventually(
      async () => {
        const { status } = await workflow(namespace, name);
        const { phase = "", message = "", nodes = {} } = status ?? {};
        const over = phase === "Succeeded" || phase === "Failed" || phase === "Error";
        if (!over) throw new Error(JSON.stringify(status));
        const all = new Map(Object.values(nodes).map((node) => [node.displayName, node]));
        return all.set("", { displayName: "", type: "Workflow", phase, message });
      },
      { ...patient, what: `the end of workflow ${name}` },
    );
  }

  /** Creates a namespace with Argo's controller; both are removed after the test. */
  async function argoIn(onTestFinished: OnFinished): Promise<string> {
    const { host, west, directory } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    await giveFiles(west, namespace, [{ from: join(argo, "argoexec"), to: "/bin/argoexec" }]);
    await apply(namespace, ...rightsAndSettings(namespace));
    const images = [`--executor-image=${IMAGE}`, "--executor-image-pull-policy=IfNotPresent"];
    const controller: EngineProgram = startProgram(
      join(argo, "workflow-controller"),
      [`--kubeconfig=${host.kubeconfig}`, "--namespaced", `--namespace=${namespace}`, ...images],
      {
        // Without it each step takes ten seconds more.
        env: { ...process.env, LEADER_ELECTION_DISABLE: "true", DEFAULT_REQUEUE_TIME: "1s" },
        cwd: directory,
        logFile: join(directory, `${namespace}.log`),
      },
    );
    onTestFinished(async () => {
      controller.kill("SIGTERM");
      await controller.ended;
    });
    return namespace;
  }

  test.concurrent("runs an Argo workflow with outputs, results, retries, an exit handler and an object that a step creates on the host", async ({
    expect,
    onTestFinished,
  }) => {
    const { client, member } = clusters();
    const namespace = await argoIn(onTestFinished);
    const report = parse(readFileSync(REPORT, "utf8"));
    report.spec.arguments.parameters = [{ name: "image", value: IMAGE }];
    await apply(namespace, report);
    const nodes = await ended(namespace, "report");
    expect([...nodes.values()].filter(({ phase }) => phase !== "Succeeded")).toMatchObject([
      {
        displayName: "unsteady(0)",
        phase: "Failed",
        message: "main: Error (exit code 75)",
        outputs: { exitCode: "75" },
      },
    ]);
    expect(nodes.get("measure")?.outputs).toMatchObject({
      exitCode: "0",
      parameters: [{ name: "size", value: "10" }],
    });
    expect(nodes.get("square(1:2)")?.outputs).toMatchObject({ exitCode: "0", result: "144" });
    const ran = [...nodes.values()].filter(({ type }) => type === "Pod");
    expect(new Set(ran.map(({ hostNodeName }) => hostNodeName))).toEqual(new Set(["legation-west"]));
    const made = await client.get(configMaps, { namespace, name: "squares" });
    expect(made.data).toEqual({ squares: "[121,144,169]" });
    // The ConfigMap exists on the host alone: no pod of the member names it.
    expect(await member.find(configMaps, { namespace, name: "squares" })).toBeUndefined();
    await eventuallyPasses(async () => {
      const { items } = await client.list(pods, { namespace, labelSelector: COMPLETED });
      expect(items).toHaveLength(ran.length);
    });
    expect(await podsOf(member, namespace)).toHaveLength(ran.length);
  });

  test.concurrent("retries an Argo step that is evicted in the member, stops it, and removes it with its workflow", async ({
    expect,
    onTestFinished,
  }) => {
    const { host, client, member } = clusters();
    const namespace = await argoIn(onTestFinished);
    const container = (script: string): object => ({ image: IMAGE, command: ["sh", "-c", script] });
    await apply(namespace, {
      apiVersion: "argoproj.io/v1alpha1",
      kind: "Workflow",
      metadata: { name: "long" },
      spec: {
        entrypoint: "main",
        onExit: "closing",
        templates: [
          {
            name: "main",
            retryStrategy: { limit: 1, retryPolicy: "Always" },
            container: container("trap 'exit 3' TERM; sleep 600 & wait"),
          },
          { name: "closing", container: container("test {{workflow.status}} = Failed") },
        ],
      },
    });
    const evicted = await runningPod(namespace, undefined);
    await evict(member, namespace, evicted);
    const second = await runningPod(namespace, evicted);
    await podThat(client, namespace, evicted, inPhase("Failed"));
    // Argo signals the containers by exec.
    const stop = JSON.stringify({ spec: { shutdown: "Stop" } });
    await kubectl(host, ["patch", "workflow", "long", "-n", namespace, "--type=merge", "-p", stop]);
    const nodes = await ended(namespace, "long");
    expect(nodes.get("")).toMatchObject({ phase: "Failed", message: "Stopped with strategy 'Stop'" });
    const failed = (message: RegExp): object => ({ phase: "Failed", message: expect.stringMatching(message) });
    expect(nodes.get("long(0)")).toMatchObject(failed(/^main: Error \(exit code \d+\)$/));
    // The order in which Argo sees these varies; it may take the label of a stopped pod that has ended for its deletion.
    const stopped = /^(workflow shutdown with strategy: {2}Stop|main: Error \(exit code \d+\)|pod deleted)$/;
    expect(nodes.get("long(1)")?.message).toMatch(stopped);
    expect(nodes.get("long.onExit")).toMatchObject({ phase: "Succeeded", outputs: { exitCode: "0" } });
    await podThat(client, namespace, second, inPhase("Failed"));
    await kubectl(host, ["delete", "workflow", "long", "-n", namespace]);
    await eventuallyPasses(async () => {
      expect([...(await podsOf(client, namespace)), ...(await podsOf(member, namespace))]).toEqual([]);
    });
  });

  /** Waits for a running pod of a step and returns its name: Argo deletes pending pods when it stops a workflow. */
  function runningPod(namespace: string, after: string | undefined): Promise<string> {
    return eventually(
      async () => {
        const running = (await podsOf(clusters().client, namespace)).find(
          (pod) => pod.metadata.name !== after && inPhase("Running")(pod),
        );
        return running?.metadata.name;
      },
      { ...patient, what: "a step that runs" },
    );
  }
});
