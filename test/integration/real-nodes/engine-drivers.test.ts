import { test } from "vitest";
import type { Container, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { pods } from "../../../src/kube/resources.ts";
import { IMAGE, onEngineClusters } from "../../support/engines/clusters.ts";
import { kubectlIn } from "../../support/engines/kubectl-in-pod.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { inPhase, podGone, podsOf, podThat } from "../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";

// Jobs, and a driver that makes the same API calls as Spark's, which takes long to start.

const patient = { timeoutMs: 180_000 };

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
    await applyAll(clusters().host, objects, ["-n", namespace]);
  }

  /** Grants the default service account of a namespace all that a driver does. */
  async function allow(namespace: string, resources: string): Promise<void> {
    const { host } = clusters();
    const rule = ["--verb=get,list,watch,create,patch,delete,deletecollection", `--resource=${resources}`];
    await kubectl(host, ["create", "role", "driver", "-n", namespace, ...rule]);
    const binding = ["create", "rolebinding", "driver", "-n", namespace, "--role=driver"];
    await kubectl(host, [...binding, `--serviceaccount=${namespace}:default`]);
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

  /** Submits a driver as spark-submit does: the pod first, then the ConfigMap that it mounts and its Service, owned by it. */
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

  test.concurrent("deletes the executors of a Spark driver with it", async ({ expect, onTestFinished }) => {
    const { client, member } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    await allow(namespace, "pods");
    await submit(namespace, "killed", "sleep 600 & wait");
    await podThat(client, namespace, "killed-exec-2", inPhase("Running"), patient);
    await client.delete(pods, { namespace, name: "killed" });
    for (const name of ["killed", "killed-exec-1", "killed-exec-2"]) await podGone(client, namespace, name);
    await eventuallyPasses(async () => expect(await podsOf(member, namespace)).toEqual([]));
  });

  test.concurrent("runs Jobs with indexes and hostnames, a pod failure policy, and a CronJob's Job", async ({
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
