import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import type { Container, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { pods } from "../../../src/kube/resources.ts";
import { type EngineClusters, IMAGE, onEngineClusters } from "../../support/engines/clusters.ts";
import { kubectlIn } from "../../support/engines/kubectl-in-pod.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { inPhase, podGone, podsOf, podThat } from "../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";

// What Argo Workflows and Tekton do to pods and from inside them, call by call, and what a Spark driver leaves when it is deleted.

const patient = { timeoutMs: 180_000 };
const RESULTS = "taskresults.engines.test";

function script(name: string, text: string): Container {
  return { name, image: IMAGE, command: ["sh", "-c", `trap 'exit 0' TERM\n${text}`] };
}

function pod(name: string, spec: Partial<PodSpec>, labels: Record<string, string> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels },
    spec: { containers: [], terminationGracePeriodSeconds: 1, restartPolicy: "Never", ...spec },
  };
}

onEngineClusters((clusters) => {
  async function apply(namespace: string, ...objects: readonly object[]): Promise<void> {
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    await kubectl(clusters().host, ["apply", "-n", namespace, "-f", "-"], { input });
  }

  /** Lets the default service account of a namespace do all that a driver does. */
  async function allow(namespace: string, resources: string): Promise<void> {
    const { host } = clusters();
    const rule = ["--verb=get,list,watch,create,patch,delete,deletecollection", `--resource=${resources}`];
    await kubectl(host, ["create", "role", "driver", "-n", namespace, ...rule]);
    const binding = ["create", "rolebinding", "driver", "-n", namespace, "--role=driver"];
    await kubectl(host, [...binding, `--serviceaccount=${namespace}:default`]);
  }

  function ended({ client }: EngineClusters, namespace: string, name: string): Promise<Stored<Pod>> {
    const over = (found: Pod): boolean => inPhase("Succeeded")(found) || inPhase("Failed")(found);
    return podThat(client, namespace, name, over, patient);
  }

  const DRIVER = `cat /conf/spark.properties
self=$(kubectl get pod $HOSTNAME -o jsonpath='{.metadata.uid}') || exit 10
for n in 1 2; do
cat <<END
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "$HOSTNAME-exec-$n", "labels": {"spark-role": "executor", "spark-app": "pi"},
  "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "$HOSTNAME", "uid": "$self", "controller": true}]},
 "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
  "containers": [{"name": "executor", "image": "${IMAGE}", "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"]}]}}
END
done | kubectl create -f - || exit 11
kubectl wait pod -l spark-role=executor --for=condition=Ready --timeout=150s || exit 12
kubectl get pods -l spark-role=executor --field-selector=status.phase=Running -o name
`;

  /** A driver as spark-submit makes it: the pod first, then what it mounts and the Service that executors dial, both its own. */
  async function submit(namespace: string, name: string, after: string): Promise<Stored<Pod>> {
    const { client } = clusters();
    const conf = { name: "conf", configMap: { name: `${name}-conf` } };
    const main = { ...script("driver", DRIVER + after), volumeMounts: [{ name: "conf", mountPath: "/conf" }] };
    const { volumes = [], containers } = kubectlIn(main);
    const labels = { "spark-role": "driver", "spark-app": "pi" };
    const driver = await client.create(pods, {
      ...pod(name, { volumes: [...volumes, conf], containers }, labels),
      metadata: { name, namespace, labels },
    });
    const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name, uid: driver.metadata.uid, controller: true }];
    const spec = { clusterIP: "None", selector: labels, ports: [{ name: "driver-rpc-port", port: 7078 }] };
    await apply(
      namespace,
      { apiVersion: "v1", kind: "Service", metadata: { name: `${name}-svc`, ownerReferences }, spec },
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: `${name}-conf`, ownerReferences },
        data: { "spark.properties": "spark.app.id=pi\n" },
      },
    );
    return driver;
  }

  test.concurrent("Spark: a driver that is deleted takes its executors with it", async ({ expect, onTestFinished }) => {
    const { client, member } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    await allow(namespace, "pods");
    await submit(namespace, "killed", "sleep 600 & wait");
    await podThat(client, namespace, "killed-exec-2", inPhase("Running"), patient);
    await client.delete(pods, { namespace, name: "killed" });
    for (const name of ["killed", "killed-exec-1", "killed-exec-2"]) await podGone(client, namespace, name);
    await eventuallyPasses(async () => expect(await podsOf(member, namespace)).toEqual([]));
  });

  test.concurrent("Argo: the executor writes the result of its step into an object of the workflow", async ({
    expect,
    onTestFinished,
  }) => {
    const { host, west, client } = clusters();
    const names = { plural: "taskresults", singular: "taskresult", kind: "TaskResult" };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const versions = [{ name: "v1", served: true, storage: true, schema }];
    await kubectl(host, ["apply", "-f", "-"], {
      input: JSON.stringify({
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: RESULTS },
        spec: { group: "engines.test", scope: "Namespaced", names, versions },
      }),
    });
    await kubectl(host, ["wait", `crd/${RESULTS}`, "--for=condition=Established", "--timeout=30s"]);
    const namespace = await clusters().namespace(onTestFinished);
    await allow(namespace, RESULTS);
    const result = `{"apiVersion": "engines.test/v1", "kind": "TaskResult", "metadata": {"name": "'$HOSTNAME'"}, "phase": "Running"}`;
    const waits = script(
      "wait",
      `echo '${result}' | kubectl create -f - || exit 10
until test -e /work/done; do sleep 0.2; done
kubectl patch taskresult $HOSTNAME --type=merge -p "{\\"outputs\\": {\\"parameters\\": \\"$(cat /work/done)\\"}, \\"phase\\": \\"Succeeded\\"}"`,
    );
    const volumeMounts = [{ name: "work", mountPath: "/work" }];
    const { volumes = [], containers } = kubectlIn({ ...waits, volumeMounts });
    const main = { ...script("main", "sleep 1; echo hello >/work/out; mv /work/out /work/done"), volumeMounts };
    await apply(
      namespace,
      pod("step", { volumes: [...volumes, { name: "work", emptyDir: {} }], containers: [main, ...containers] }),
    );
    const step = await ended(clusters(), namespace, "step");
    expect(step.status?.phase).toBe("Succeeded");
    const written = JSON.parse(await kubectl(host, ["get", "taskresult", "step", "-n", namespace, "-o", "json"]));
    expect(written).toMatchObject({ outputs: { parameters: "hello" }, phase: "Succeeded" });
    // The controller marks what it has seen, and selects by that for ever after.
    const labels = { "workflows.argoproj.io/completed": "true" };
    await client.patch(pods, { namespace, name: "step" }, { type: "merge", body: { metadata: { labels } } });
    // A change in the member makes the controller look at the pair again.
    await kubectl(west, ["annotate", "pod", "step", "-n", namespace, "touched=true"]);
    await sleep(2_000);
    const marked = await client.list(pods, { namespace, labelSelector: "workflows.argoproj.io/completed=true" });
    expect(marked.items.map(({ metadata }) => metadata.name)).toEqual(["step"]);
  });

  test.concurrent("Tekton: the first step waits for an annotation, and a sidecar ends when its image is changed", async ({
    expect,
    onTestFinished,
  }) => {
    const { client } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    const volumes = [
      {
        name: "downward",
        downwardAPI: {
          items: [{ path: "ready", fieldRef: { fieldPath: "metadata.annotations['tekton.dev/ready']" } }],
        },
      },
      { name: "work", emptyDir: {} },
    ];
    const step = {
      ...script(
        "step-build",
        `until test "$(cat /downward/ready)" = READY; do sleep 0.2; done
printf '[{"key":"digest","value":"sha256:1","type":1}]' >/dev/termination-log`,
      ),
      volumeMounts: [{ name: "downward", mountPath: "/downward" }],
    };
    const sidecar = {
      ...script("sidecar-registry", "test -e /work/started && exit 0; touch /work/started; sleep 600 & wait"),
      volumeMounts: [{ name: "work", mountPath: "/work" }],
    };
    await apply(namespace, pod("task", { volumes, containers: [step, sidecar] }));
    const statusOf = ({ status }: Pod, name: string) => status?.containerStatuses?.find((one) => one.name === name);
    // As its controller does: not before every sidecar is ready.
    const allRun = (found: Pod): boolean =>
      inPhase("Running")(found) && statusOf(found, "sidecar-registry")?.ready === true;
    const running = await podThat(client, namespace, "task", allRun, patient);
    expect(statusOf(running, "step-build")?.state?.running).toBeDefined();
    const ref = { namespace, name: "task" };
    const annotations = { "tekton.dev/ready": "READY" };
    await client.patch(pods, ref, { type: "merge", body: { metadata: { annotations } } });
    const stepEnded = await podThat(
      client,
      namespace,
      "task",
      (found) => statusOf(found, "step-build")?.state?.terminated !== undefined,
      { timeoutMs: 120_000 },
    );
    expect(statusOf(stepEnded, "step-build")?.state?.terminated).toMatchObject({
      exitCode: 0,
      message: '[{"key":"digest","value":"sha256:1","type":1}]',
    });
    const containers = [{ name: "sidecar-registry", image: "localhost/pause:1" }];
    await client.patch(pods, ref, { type: "strategic", body: { spec: { containers } } });
    const task = await ended(clusters(), namespace, "task");
    expect(task.status?.phase).toBe("Succeeded");
    expect(statusOf(task, "sidecar-registry")?.state?.terminated?.exitCode).toBe(0);
  });

  test.concurrent("Jobs: indexes and hostnames, a failure that its policy knows, and a job of a CronJob", async ({
    expect,
    onTestFinished,
  }) => {
    const { host, member } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    const template = (text: string): object => ({
      spec: {
        subdomain: "workers",
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 1,
        containers: [script("main", text)],
      },
    });
    const indexed = { completionMode: "Indexed", completions: 3, parallelism: 3 };
    const ignore = { action: "FailIndex", onExitCodes: { containerName: "main", operator: "In", values: [42] } };
    const job = (name: string, spec: object): object => ({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name },
      spec,
    });
    const service = { clusterIP: "None", selector: { "batch.kubernetes.io/job-name": "ranks" } };
    await apply(
      namespace,
      { apiVersion: "v1", kind: "Service", metadata: { name: "workers" }, spec: service },
      job("ranks", {
        ...indexed,
        template: template("test $HOSTNAME = ranks-$JOB_COMPLETION_INDEX && hostname -f | grep -q '^ranks-'"),
      }),
      job("partly", {
        ...indexed,
        backoffLimitPerIndex: 3,
        podFailurePolicy: { rules: [ignore] },
        template: template("test $JOB_COMPLETION_INDEX != 1 || exit 42"),
      }),
      {
        apiVersion: "batch/v1",
        kind: "CronJob",
        metadata: { name: "nightly" },
        spec: { schedule: "0 3 1 1 *", jobTemplate: { spec: { template: template("true") } } },
      },
    );
    await kubectl(host, ["create", "job", "now", "--from=cronjob/nightly", "-n", namespace]);
    const status = async (name: string): Promise<Record<string, unknown>> =>
      JSON.parse(await kubectl(host, ["get", "job", name, "-n", namespace, "-o", "json"])).status;
    await eventuallyPasses(
      async () => {
        expect(await status("ranks")).toMatchObject({ succeeded: 3, completedIndexes: "0-2" });
        expect(await status("partly")).toMatchObject({ completedIndexes: "0,2", failedIndexes: "1", failed: 1 });
        expect(await status("now")).toMatchObject({ succeeded: 1 });
      },
      { ...patient, intervalMs: 500 },
    );
    expect(await podsOf(member, namespace)).toHaveLength(7);
    await kubectl(host, ["delete", "jobs", "--all", "-n", namespace]);
    await eventually(async () => (await podsOf(member, namespace)).length === 0);
  });
});
